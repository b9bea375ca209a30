//! What the epochs are made of, for a model to exchange.
//!
//! `tests/epoch_model` compiles the records and the domain a second time, with another module of this
//! name: it holds loom's atomics, and a barrier that is what membarrier(2) is, a fence that every
//! thread runs into sooner or later.

pub(crate) use crate::barrier::{everywhere, is_available, is_due};
pub(crate) use crate::constant;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};

/// Fenced pins after which a thread is trusted to come by often. Each time it does not, it costs a
/// system call to find out.
pub(crate) const TRUSTED_AFTER: u32 = 256;

/// Keeps the compiler from moving what follows before what came first. The processor may, until
/// [`everywhere`] is called.
#[inline]
pub(crate) fn here() {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// Stores `word` again, and fences what follows from what came before.
#[inline]
pub(crate) fn settle(place: &AtomicU64, word: u64) {
    if cfg!(target_arch = "x86_64") {
        // The same as a fence there, and twice as fast.
        let _ = place.swap(word, Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}
