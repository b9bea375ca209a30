//! The locks and atomics of code that models check.
//!
//! `tests/gate_model` and `tests/journal_model` compile the barrier and the journal a second time,
//! with a module of this name that has loom's types: every interleaving of the same source is run.
//! In the crate's unit tests a thread under a shuttle model (`space::preallocation::tests::models`)
//! yields to its scheduler before each lock.

pub(crate) use holdfast_sync::PerCore;
#[cfg(not(test))]
pub(crate) use parking_lot::Mutex;
pub(crate) use parking_lot::{Condvar, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(test)]
pub(crate) use scheduled::Mutex;
#[cfg(test)]
pub(crate) use scheduled::model;

/// Locks if no thread holds the lock.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock()
}

#[cfg(test)]
mod scheduled {
    use super::MutexGuard;
    use std::cell::Cell;

    thread_local! {
        static MODELLED: Cell<bool> = const { Cell::new(false) };
    }

    /// Puts this thread under a model.
    pub(crate) fn model() {
        MODELLED.set(true);
    }

    /// A lock that yields to the model's scheduler.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            if !MODELLED.get() {
                return self.0.lock();
            }
            loop {
                shuttle::thread::yield_now();
                if let Some(guard) = self.0.try_lock() {
                    return guard;
                }
            }
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            if MODELLED.get() {
                shuttle::thread::yield_now();
            }
            self.0.try_lock()
        }
    }
}
