//! Loom's atomics and locks under the names that the barrier uses.

pub(crate) use loom::sync::atomic::{Ordering, fence};
pub(crate) use loom::sync::{RwLockReadGuard, RwLockWriteGuard};
use std::sync::atomic::AtomicU8;

/// One lock for each of two threads; a third shares the first's.
const SLOTS: usize = 2;

/// A deliberate fault, which a model must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Broken {
    Nothing,
    /// `reuses` does not grow.
    Count,
    /// Closing skips one core's lock.
    Closing,
}

static BROKEN: AtomicU8 = AtomicU8::new(Broken::Nothing as u8);

pub(crate) fn break_on_purpose(broken: Broken) {
    BROKEN.store(broken as u8, std::sync::atomic::Ordering::SeqCst);
}

fn is_broken(broken: Broken) -> bool {
    BROKEN.load(std::sync::atomic::Ordering::SeqCst) == broken as u8
}

/// An atomic with the interface of the real one.
#[derive(Debug)]
pub(crate) struct AtomicU64(loom::sync::atomic::AtomicU64);

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> Self {
        Self(loom::sync::atomic::AtomicU64::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    pub(crate) fn fetch_add(&self, more: u64, order: Ordering) -> u64 {
        let more = if is_broken(Broken::Count) { 0 } else { more };
        self.0.fetch_add(more, order)
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
        let open = usize::from(is_broken(Broken::Closing));
        self.0[open..].iter()
    }
}

/// A lock without poisoning, like the real one.
#[derive(Debug)]
pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::RwLock::new(value))
    }

    pub(crate) fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect("a panic ends the model")
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect("a panic ends the model")
    }
}
