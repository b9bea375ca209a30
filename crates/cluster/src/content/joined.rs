//! The memory budget that was joined.

use holdfast_core::Memory;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The budget.
pub(super) struct Joined {
    pub(super) memory: Arc<Memory>,
    /// Bytes that were added since limits were computed.
    pub(super) added: AtomicU64,
    /// The shrinkers are registered as long as these live.
    pub(super) _shrinkers: Box<dyn Any + Send + Sync>,
}
