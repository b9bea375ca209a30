//! An open volume, for its callers.

use std::sync::{Arc, OnceLock};

use holdfast_core::shrinkers::Registered;

use super::Inner;
use super::budget_member::Nodes;
use super::worker::Worker;

/// An open volume.
///
/// It commits every few seconds, and checkpoints when the journal fills. A store that is dropped
/// leaves the volume as after a crash; [`VolumeStore::close`] closes it cleanly.
#[derive(Debug)]
pub struct VolumeStore {
    pub(super) inner: Arc<Inner>,
    pub(super) worker: Worker,
    /// Frees tree nodes beyond their share of a memory budget.
    pub(super) shrinker: OnceLock<Arc<Registered<Nodes>>>,
}
