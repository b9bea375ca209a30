//! Loom's atomics and locks under the names that the index uses.

pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
#[path = "../facade/mod.rs"]
#[expect(dead_code, reason = "a model uses a part of it")]
mod facade;

pub(crate) use facade::{Condvar, Mutex, MutexGuard};

/// Two slots a node: enough for neighbours, and for a node above.
pub(crate) const NODE_BITS: u32 = 1;

/// The first change counts.
pub(crate) const SHARED_AFTER: usize = 1;

/// The next one drives it out.
pub(crate) const SUSPECTS: usize = 1;

/// One element is enough where many would only keep threads apart.
macro_rules! process_wide {
    ($(#[$meta:meta])* static $name:ident: [$type:ty; $length:expr] = $each:expr;) => {
        loom::lazy_static! {
            $(#[$meta])*
            static ref $name: [$type; 1] = [$each];
        }
    };
}
pub(crate) use process_wide;
