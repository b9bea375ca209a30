//! Loom's atomics and locks under the names that the journal uses.

#[path = "../../../sync/tests/facade/mod.rs"]
#[expect(dead_code, reason = "a model uses a part of it")]
mod facade;

pub(crate) use facade::{Mutex, MutexGuard};
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
use std::sync::atomic::AtomicU8;

/// A lane for each of two threads; a third shares the first's.
pub(crate) const SLOTS: usize = 2;

/// A deliberate fault, which a model must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Broken {
    Nothing,
    /// The latch loses its value, as if a failed commit released the lock like any other.
    Latch,
    /// The latch is set only after the waiters were woken: after the end of the turn.
    LateLatch,
    /// No waiter is woken.
    Wakes,
}

static BROKEN: AtomicU8 = AtomicU8::new(Broken::Nothing as u8);

pub(crate) fn break_on_purpose(broken: Broken) {
    BROKEN.store(broken as u8, std::sync::atomic::Ordering::SeqCst);
}

fn is_broken(broken: Broken) -> bool {
    BROKEN.load(std::sync::atomic::Ordering::SeqCst) == broken as u8
}

/// A latch with the interface of the real one.
#[derive(Debug)]
pub(crate) struct AtomicBool {
    set: loom::sync::atomic::AtomicBool,
}

loom::lazy_static! {
    /// For [`Broken::LateLatch`]: a model has one journal, and that has one latch.
    static ref LATE: loom::sync::atomic::AtomicBool = loom::sync::atomic::AtomicBool::new(false);
}

impl AtomicBool {
    pub(crate) fn new(set: bool) -> Self {
        let set = loom::sync::atomic::AtomicBool::new(set);
        Self { set }
    }

    pub(crate) fn load(&self, order: Ordering) -> bool {
        self.set.load(order) || is_broken(Broken::LateLatch) && LATE.load(Ordering::SeqCst)
    }

    pub(crate) fn store(&self, set: bool, order: Ordering) {
        if !is_broken(Broken::Latch) && !is_broken(Broken::LateLatch) {
            self.set.store(set, order);
        }
    }
}

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

/// A condition that may be broken.
#[derive(Debug)]
pub(crate) struct Condvar(facade::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(facade::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.0.wait(guard);
    }

    pub(crate) fn notify_all(&self) {
        if is_broken(Broken::Wakes) {
            return;
        }
        if is_broken(Broken::LateLatch) {
            loom::thread::yield_now();
            LATE.store(true, Ordering::SeqCst);
        }
        self.0.notify_all();
    }
}
