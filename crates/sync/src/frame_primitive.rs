//! What the frames are made of, for a model to exchange.
//!
//! `tests/frame_model` compiles `frame` a second time, with another module of this name: it holds
//! loom's atomics, and hears of every use of a frame's memory, so that the same source runs under
//! every interleaving.

pub(crate) use parking_lot::{Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// log2 of the slots of a node. Models have small nodes.
pub(crate) const FAN_SHIFT: u32 = 6;

/// Declares a function that is `const`, except in models, whose atomics are not made so.
macro_rules! constant {
    ($(#[$meta:meta])* $visibility:vis fn $($function:tt)*) => {
        $(#[$meta])* $visibility const fn $($function)*
    };
}
pub(crate) use constant;

/// A load by the only thread that stores there, or by whoever has the place to himself: it meets
/// what that thread stored last. In models it is not a step of its own.
pub(crate) trait Own {
    type Value;

    fn own(&self) -> Self::Value;
}

impl Own for AtomicU32 {
    type Value = u32;

    #[inline]
    fn own(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }
}

impl Own for AtomicU64 {
    type Value = u64;

    #[inline]
    fn own(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

impl<T> Own for AtomicPtr<T> {
    type Value = *mut T;

    #[inline]
    fn own(&self) -> *mut T {
        self.load(Ordering::Relaxed)
    }
}

/// Uses of a frame's bytes, said where they begin. Only models listen.
pub(crate) mod memory {
    use std::ptr::NonNull;

    /// There are `len` bytes for the caller alone.
    #[inline]
    pub(crate) fn made(_start: NonNull<u8>, _len: usize) {}

    /// The first `len` bytes are about to be read.
    #[inline]
    pub(crate) fn read(_start: NonNull<u8>, _len: usize) {}

    /// Bytes `from..to` are about to be written.
    #[inline]
    pub(crate) fn written(_start: NonNull<u8>, _from: usize, _to: usize) {}

    /// The bytes are nobody's from now on; with debug assertions, whoever reads them nevertheless
    /// does not find what was there.
    ///
    /// # Safety
    /// They are an allocation that nobody uses any more.
    #[inline]
    #[expect(unsafe_code, reason = "memory that ends here")]
    pub(crate) unsafe fn ended(start: NonNull<u8>, len: usize) {
        if cfg!(debug_assertions) {
            // SAFETY: the caller's promise.
            unsafe { start.write_bytes(0xDF, len) };
        }
    }
}
