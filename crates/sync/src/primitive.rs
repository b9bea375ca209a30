//! The atomics, locks and sizes that loom's models replace.
//!
//! `tests/index_model` and `tests/epoch_model` compile the modules that use this one a second time,
//! each with another module of this name that holds loom's types. The same source then runs under
//! every interleaving.

pub(crate) use crate::barrier::{everywhere, is_available, is_due};
pub(crate) use crate::constant;
// Not the standard library's locks: the thread sanitizer does not see inside those.
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};

/// Bits of a key that one level of a tree decides. Models have small nodes.
pub(crate) const NODE_BITS: u32 = 6;

/// Fenced pins after which a thread is trusted to pin often. If it then does not, finding that out
/// costs a system call each time.
pub(crate) const TRUSTED_AFTER: u32 = 256;

/// Changes from one thread to another after which the uses of an object are counted per core.
pub(crate) const SHARED_AFTER: usize = 4;

/// Empty leaves that each core remembers before one is freed.
pub(crate) const SUSPECTS: usize = 8;

/// Declares an array for the whole process. Models start each execution with a new one.
macro_rules! process_wide {
    ($(#[$meta:meta])* static $name:ident: [$type:ty; $length:expr] = $each:expr;) => {
        $(#[$meta])*
        static $name: [$crate::padded::Padded<$type>; $length] =
            [const { $crate::padded::Padded($each) }; $length];
    };
}
pub(crate) use process_wide;

/// Keeps the compiler from reordering accesses across this call. The processor may reorder them,
/// until [`everywhere`] is called.
#[inline]
pub(crate) fn here() {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// Stores `word` again, with a full fence after it.
#[inline]
pub(crate) fn store_fenced(place: &AtomicU64, word: u64) {
    if cfg!(target_arch = "x86_64") {
        // The same as a fence on x86-64, and twice as fast.
        let _ = place.swap(word, Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}
