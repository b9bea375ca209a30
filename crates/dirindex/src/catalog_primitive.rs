//! What the catalog is made of, for a model to exchange.
//!
//! `tests/catalog_model` compiles `catalog` a second time, with another module of this name: it holds
//! loom's atomics, small sizes, and hears of every item's uses, so that the same source runs under
//! every interleaving.

pub(crate) use holdfast_sync::constant;
pub(crate) use std::alloc::dealloc;
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::hint;
use std::thread;
use std::time::Duration;

/// The largest class of a row that is searched without a table: 3, 7, 15 or 31 slots.
pub(crate) const CLASS_SMALL: u32 = 3;

/// Slots of a bucket: with its head one cache line.
pub(crate) const BUCKET_SLOTS: usize = 7;

/// Buckets that an item may be away from home, as long as the table can grow.
pub(crate) const REACH: usize = 3;

/// Buckets of the largest segment, unless hashes collide beyond measure, as a power of two: 1 KiB.
pub(crate) const SIZE_LOG_MAX: u32 = 4;

/// Are atomics more than their values? Then zeros are none, and layouts are not the promised ones.
pub(crate) const MODEL: bool = false;

/// Looks at something that is about to change, before the thread gives way to the one at it.
const SPINS: u32 = 64;
/// Looks before it sleeps, lest it keep the one at it from running at all.
const YIELDS: u32 = 256;
const NAP: Duration = Duration::from_micros(50);

/// A lock of one byte.
pub(crate) struct Lock(RawMutex);

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(RawMutex::INIT)
    }

    #[inline]
    pub(crate) fn lock(&self) {
        self.0.lock();
    }

    /// # Safety
    /// The caller has locked it, on this thread.
    #[inline]
    #[expect(unsafe_code, reason = "a lock without a guard of its own")]
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock() };
    }
}

/// Lets time pass until the next look at what another thread is about to change.
#[cold]
#[inline(never)]
pub(crate) fn pause(looks: u32) {
    if looks < SPINS {
        hint::spin_loop();
    } else if looks < YIELDS {
        thread::yield_now();
    } else {
        thread::sleep(NAP);
    }
}

/// 64 bits from the system's generator (by way of the standard library's own secret).
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Runs a test; a model's atomics exist in models only.
#[cfg(test)]
pub(crate) fn run(test: fn()) {
    test();
}

/// An item's life. Only models listen.
pub(crate) mod memory {
    use std::ptr::NonNull;

    /// It was made.
    #[inline]
    pub(crate) fn made<T>(_start: NonNull<T>) {}

    /// It is about to be looked at.
    #[inline]
    pub(crate) fn read<T>(_start: NonNull<T>) {}

    /// It ends.
    #[inline]
    pub(crate) fn ended<T>(_start: NonNull<T>) {}
}

/// An atomic's end. Only models listen.
pub(crate) trait End {
    /// Nobody uses it from now on.
    #[inline]
    fn end(&self) {}
}

impl<T> End for AtomicPtr<T> {}
