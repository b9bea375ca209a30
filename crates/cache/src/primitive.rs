//! The atomics and locks that loom's models replace.
//!
//! `tests/cache_model` compiles the modules that use them a second time, with loom's atomics and
//! locks under this name.

pub(crate) use parking_lot::{Condvar, Mutex};
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
