//! The atomics and locks of the modules that loom checks.
//!
//! `tests/core_model` compiles those modules a second time, with loom's atomics and locks under
//! this name.

pub(crate) use parking_lot::{Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
