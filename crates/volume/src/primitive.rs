//! The locks and atomics under what models check.
//!
//! `tests/gate_model` and `tests/journal_model` compile the gate and the journal a second time, each with another module
//! of this name that holds loom's: the same source runs under every interleaving. In the crate's own tests a thread that
//! runs under a model (`space::preallocation::tests::models`) lets shuttle choose which thread goes on before each lock;
//! everything else has the locks as they are.

pub(crate) use holdfast_sync::PerCore;
#[cfg(not(test))]
pub(crate) use parking_lot::Mutex;
pub(crate) use parking_lot::{Condvar, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(test)]
pub(crate) use scheduled::Mutex;
#[cfg(test)]
pub(crate) use scheduled::model;

/// The lock, if no thread has it.
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

    /// Says that this thread runs under a model from now on.
    pub(crate) fn model() {
        MODELLED.set(true);
    }

    /// A lock before which a model may switch to another thread.
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
