//! Loom's atomics and locks under the names that the journal uses.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::ops::{Deref, DerefMut};

pub(crate) const CLOCK: bool = false;

/// A lane for each of two threads; a third shares the first's.
pub(crate) const SLOTS: usize = 2;

loom::lazy_static! {
    static ref NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
}

loom::thread_local! {
    static SLOT: usize = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

#[derive(Debug)]
pub(crate) struct PerCore<T>(Vec<T>);

impl<T> PerCore<T> {
    pub(crate) fn new(init: impl Fn() -> T) -> Self {
        Self((0..SLOTS).map(|_| init()).collect())
    }

    pub(crate) fn mine(&self) -> &T {
        &self.0[SLOT.with(|slot| *slot) % SLOTS]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

/// Locks of cores with the interface of the real ones, which have a model of their own.
#[derive(Debug)]
pub(crate) struct CoreLocks<T>(Vec<Mutex<T>>);

impl<T> CoreLocks<T> {
    pub(crate) fn new(init: impl FnMut(usize) -> T) -> Self {
        Self((0..SLOTS).map(init).map(Mutex::new).collect())
    }

    pub(crate) fn count() -> usize {
        SLOTS
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0[SLOT.with(|slot| *slot) % SLOTS].lock()
    }

    pub(crate) fn close(&self) -> Closed<'_, T> {
        Closed(self.0.iter().map(Mutex::lock).collect())
    }
}

pub(crate) struct Closed<'a, T>(Vec<MutexGuard<'a, T>>);

impl<T> Closed<'_, T> {
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|guard| &mut **guard)
    }
}

/// A lock with the interface of the real one.
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

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

/// A condition with the interface of the real one.
#[derive(Debug)]
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
