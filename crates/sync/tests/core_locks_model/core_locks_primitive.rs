//! What the locks of cores are made of here: loom's atomics and locks, and a barrier as the kernel has it.
//!
//! A barrier reaches a thread that sleeps at once: so whoever waits for a lock fences first and is not a
//! member until he has it.

pub(crate) use crate::epoch_primitive::{
    AtomicU64, Member, Ordering, everywhere, fence, here, is_available,
};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

pub(crate) const SHARED: usize = 1;
pub(crate) const LOOKS: usize = 1;

/// Two threads have slots of their own; a third has none.
pub(crate) fn slots() -> usize {
    2
}

// All threads of an execution are one of the system's.
thread_local! {
    static NEXT: Cell<usize> = const { Cell::new(0) };
}

loom::thread_local! {
    static SLOT: Cell<Option<usize>> = Cell::new(None);
}

/// Begins an execution.
pub(crate) fn begin(available: bool) {
    crate::epoch_primitive::begin(available);
    NEXT.set(0);
}

/// The calling thread gets a number, and is reached by barriers.
pub(crate) fn come() -> Member {
    SLOT.with(|slot| slot.set(Some(NEXT.replace(NEXT.get() + 1))));
    let member = Member::new();
    // A thread that begins has been through the kernel, too.
    fence(Ordering::SeqCst);
    member
}

pub(crate) fn own_thread_slot() -> Option<usize> {
    SLOT.with(Cell::get)
}

pub(crate) fn thread_slot() -> usize {
    own_thread_slot().unwrap_or(0)
}

pub(crate) fn settle_down() {
    panic!("the barrier works");
}

/// Waits for something; barriers do not wait for the thread meanwhile.
fn away<R>(wait: impl FnOnce() -> R) -> R {
    // The end of being a member is a fence.
    Member::leave();
    let got = wait();
    Member::come_back();
    got
}

pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(away(|| self.0.lock().expect("not poisoned"))))
    }
}

pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let locked = guard.0.take().expect("locked");
        let again = away(|| self.0.wait(locked).expect("not poisoned"));
        guard.0 = Some(again);
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

pub(crate) struct RwLockReadGuard<'a, T>(loom::sync::RwLockReadGuard<'a, T>);

pub(crate) struct RwLockWriteGuard<'a, T>(loom::sync::RwLockWriteGuard<'a, T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::RwLock::new(value))
    }

    pub(crate) fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard(away(|| self.0.read().expect("not poisoned")))
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard(away(|| self.0.write().expect("not poisoned")))
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
