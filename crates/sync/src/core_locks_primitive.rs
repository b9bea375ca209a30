//! What the locks of cores are made of, for a model to exchange.
//!
//! `tests/core_locks_model` compiles them a second time, with another module of this name: it holds
//! loom's atomics and locks, and a barrier that is what membarrier(2) is.

pub(crate) use crate::epoch_primitive::{
    AtomicU64, Ordering, everywhere, fence, here, is_available,
};
pub(crate) use crate::per_core::slots;
pub(crate) use crate::thread_slot::{own_thread_slot, thread_slot};
pub(crate) use parking_lot::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// Locks that threads without a slot of their own share.
pub(crate) const SHARED: usize = 8;

/// How often a closer looks again before it sleeps.
pub(crate) const LOOKS: usize = 100;

/// If the kernel takes its barrier back: by then every processor has written what it stored.
pub(crate) fn settle_down() {
    std::thread::sleep(std::time::Duration::from_millis(10));
}
