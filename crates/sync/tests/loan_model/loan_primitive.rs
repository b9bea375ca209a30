//! What a loan is made of here: loom's locks.

pub(crate) use loom::sync::Arc;
use std::ops::{Deref, DerefMut};

/// One look, and one way to sleep.
pub(crate) const LOOKS: usize = 1;

/// At once: to yield would be to let the other one finish, as loom goes.
pub(crate) fn look_again() {}

pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

/// Empty while its thread sleeps.
pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect("not poisoned")))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("locked")
    }
}

pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let locked = guard.0.take().expect("locked");
        guard.0 = Some(self.0.wait(locked).expect("not poisoned"));
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
