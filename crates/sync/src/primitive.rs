//! The atomics, locks and sizes under whatever loom checks.
//!
//! `tests/index_model` and `tests/epoch_model` compile the modules that use this one a second time, each with another
//! module of this name that holds loom's: the same source runs under every interleaving.

pub(crate) use crate::barrier::{everywhere, is_available, is_due};
pub(crate) use crate::constant;
// Not the standard library's locks: the thread sanitizer does not see inside those.
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};

/// Bits of a key that one level of a tree decides. Models have small nodes.
pub(crate) const NODE_BITS: u32 = 6;

/// Fenced pins after which a thread is trusted to come by often. Each time it does not, it costs a
/// system call to find out.
pub(crate) const TRUSTED_AFTER: u32 = 256;

/// Changes from one thread to another after which the uses of an object are spread over the cores.
pub(crate) const SHARED_AFTER: usize = 4;

/// Empty leaves that each core keeps for a while.
pub(crate) const SUSPECTS: usize = 8;

/// Do walks look at what they will meet next, to have it fetched? It changes nothing, and models would try all
/// moments at which it can happen.
pub(crate) const LOOKS_AHEAD: bool = true;

/// Declares an array that the whole process shares. Models start each execution with a new one.
macro_rules! process_wide {
    ($(#[$meta:meta])* static $name:ident: [$type:ty; $length:expr] = $each:expr;) => {
        $(#[$meta])*
        static $name: [$crate::padded::Padded<$type>; $length] =
            [const { $crate::padded::Padded($each) }; $length];
    };
}
pub(crate) use process_wide;

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
