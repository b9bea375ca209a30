//! The atomics and locks under whatever is checked by a model.
//!
//! `tests/index_model.rs` compiles the modules that use this one a second time, with another
//! module of this name that holds loom's: the same source runs under every interleaving.

// Not the standard library's locks: the thread sanitizer does not see inside those.
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Bits of a key that one level of a tree decides. Models have small nodes.
pub(crate) const NODE_BITS: u32 = 6;

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
