//! Loom's locks under the names and with the interface of the real ones, without poisoning.
//!
//! Models of several crates take them from here, into the module `primitive` that the sources under
//! test import.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    locked: Option<loom::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            lock: self,
            locked: Some(self.0.lock().expect("a panic ends the model")),
        }
    }
}

impl<T> MutexGuard<'_, T> {
    pub(crate) fn unlocked<R>(guard: &mut Self, work: impl FnOnce() -> R) -> R {
        guard.locked = None;
        let done = work();
        guard.locked = guard.lock.lock().locked.take();
        done
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.locked.as_ref().expect("locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.locked.as_mut().expect("locked")
    }
}

#[derive(Debug)]
pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let locked = guard.locked.take().expect("locked");
        guard.locked = Some(self.0.wait(locked).expect("a panic ends the model"));
    }

    /// No time passes in a model.
    pub(crate) fn wait_for<T>(&self, _guard: &mut MutexGuard<'_, T>, _time: Duration) {}

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
