//! The locks and atomics under [`space`](crate::space).
//!
//! `tests/space_model` compiles that module a second time, with another module of this name that
//! holds shuttle's: the same source runs under many schedules.

pub(crate) use parking_lot::{Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The lock, if nobody has it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock()
}
