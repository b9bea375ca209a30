//! The atomics and locks under what loom checks.
//!
//! `tests/cache_model` compiles those modules a second time, with loom's atomics and locks under this name.

pub(crate) use parking_lot::{Condvar, Mutex};
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
