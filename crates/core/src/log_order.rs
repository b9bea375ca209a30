//! The log-order lock: changes of one inode's attributes reach the store in the order in which they
//! were made.
//!
//! Attributes are changed under a lock that is released before the store is called. So each inode
//! also has a log-order lock: its holder submits the attributes as they are then. Batches of
//! different inodes do not contend.
//!
//! *Invariant.* Attributes that belong to another change (a size to its bytes, a link count to a
//! name) are changed and submitted under one hold of the log-order lock. So the store never gets
//! attributes that describe names or bytes it does not have.
//!
//! *Locking.* A batch takes the log-order locks of its inodes in ascending order of their numbers,
//! and holds them during the submission. Only the attribute locks are taken under them.

use crate::primitive::{Mutex, MutexGuard};

/// An object with a log-order lock.
pub(crate) trait LogOrdered {
    /// The number that orders the locks.
    fn number(&self) -> u64;

    /// The lock.
    fn log_order(&self) -> &Mutex<()>;
}

/// Log-order locks that are held until this is dropped.
pub(crate) struct LogOrderGuard<'t, const N: usize>([Option<MutexGuard<'t, ()>>; N]);

/// Takes the log-order locks of these objects. One object may be passed twice.
#[inline]
pub(crate) fn take<'t, T: LogOrdered, const N: usize>(
    mut whose: [&'t T; N],
) -> LogOrderGuard<'t, N> {
    if N > 1 {
        whose.sort_unstable_by_key(|one| one.number());
    }
    let mut last = None;
    LogOrderGuard(whose.map(|one| {
        let repeated = last.replace(one.number()) == Some(one.number());
        (!repeated).then(|| one.log_order().lock())
    }))
}
