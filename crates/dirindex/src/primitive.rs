//! The primitives under the directory index that a model replaces.
//!
//! `tests/index_model` compiles `index` a second time, with another module of this name. That
//! one holds loom's atomics and small sizes, and watches each item, so that the same source runs
//! under every interleaving.

pub(crate) use holdfast_sync::constant;
pub(crate) use std::alloc::dealloc;
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::hint;
use std::thread;
use std::time::Duration;

/// The largest class of a row that has no table; the classes have 3, 7, 15 or 31 slots.
pub(crate) const CLASS_SMALL: u32 = 3;

/// Slots of a bucket: with its version one cache line.
pub(crate) const BUCKET_SLOTS: usize = 7;

/// An item lies in one of so many buckets from its home on, as long as the table can grow.
pub(crate) const REACH: usize = 3;

/// Buckets of the largest segment as a power of two, which makes 1 KiB. Only segments of colliding
/// hashes are larger.
pub(crate) const SIZE_LOG_MAX: u32 = 4;

/// Are these a model's atomics? Then they need construction (zeroed memory is none), and layouts
/// differ.
pub(crate) const MODEL: bool = false;

/// Looks at a change in progress before the thread yields.
const SPINS: u32 = 64;
/// Looks before the thread sleeps, in case it keeps the other one from running.
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

/// Waits before the next look at a change in progress.
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

/// Runs a test; a model's atomics exist within an execution only.
#[cfg(test)]
pub(crate) fn run(test: fn()) {
    test();
}

/// The life of an item, for models.
pub(crate) mod memory {
    use std::ptr::NonNull;

    /// It was allocated.
    #[inline]
    pub(crate) fn made<T>(_start: NonNull<T>) {}

    /// It is about to be read.
    #[inline]
    pub(crate) fn read<T>(_start: NonNull<T>) {}

    /// It is freed.
    #[inline]
    pub(crate) fn ended<T>(_start: NonNull<T>) {}
}

/// The end of an atomic, for models.
pub(crate) trait End {
    /// No thread uses it from now on.
    #[inline]
    fn end(&self) {}
}

impl<T> End for AtomicPtr<T> {}
