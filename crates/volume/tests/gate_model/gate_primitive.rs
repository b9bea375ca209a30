//! Loom's atomics and locks under the names that the gate uses.

pub(crate) use loom::sync::atomic::{Ordering, fence};
use loom::sync::{Mutex, MutexGuard};
use std::ops::Deref;
use std::sync::atomic::AtomicU8;

/// A part of the locks for each of two threads; a third shares the first's.
const SLOTS: usize = 2;

/// What is broken on purpose, to see that a model notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Broken {
    Nothing,
    /// The count of blocks used again stands still.
    Count,
    /// Closing keeps one core's part open.
    Closing,
}

static BROKEN: AtomicU8 = AtomicU8::new(Broken::Nothing as u8);

pub(crate) fn break_on_purpose(broken: Broken) {
    BROKEN.store(broken as u8, std::sync::atomic::Ordering::SeqCst);
}

fn is_broken(broken: Broken) -> bool {
    BROKEN.load(std::sync::atomic::Ordering::SeqCst) == broken as u8
}

/// A count with the interface of the real one.
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

/// Locks of cores with the interface of the real ones, which have a model of their own.
#[derive(Debug)]
pub(crate) struct CoreLocks<T>(Vec<Mutex<T>>);

pub(crate) struct Reading<'l, T>(MutexGuard<'l, T>);

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> CoreLocks<T> {
    pub(crate) fn new(init: impl FnMut(usize) -> T) -> Self {
        Self((0..SLOTS).map(init).map(Mutex::new).collect())
    }

    pub(crate) fn read(&self) -> Reading<'_, T> {
        let own = SLOT.with(|slot| *slot) % SLOTS;
        Reading(self.0[own].lock().expect("not poisoned"))
    }

    pub(crate) fn close(&self) -> AllClosed<'_, T> {
        let open = usize::from(is_broken(Broken::Closing));
        let locked = self.0[open..].iter();
        AllClosed(
            locked
                .map(|own| own.lock().expect("not poisoned"))
                .collect(),
        )
    }
}

#[derive(Debug)]
pub(crate) struct AllClosed<'l, T>(Vec<MutexGuard<'l, T>>);

impl<T> AllClosed<'_, T> {
    pub(crate) fn first(&self) -> &T {
        &self.0[0]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|own| &**own)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|own| &mut **own)
    }
}
