//! Taking turns at the store: changes of one inode's attributes arrive in the order of their making.
//!
//! Attributes are changed under a lock that ends before the store is called. So each inode has a *turn*
//! besides, a lock beside that of its attributes: the thread that has it hands over what the attributes are then.
//! Batches that are about different inodes meet nowhere.
//!
//! *Invariant.* What inode attributes say with another change (a size with its bytes, a count of links with a name) is made with the
//! turn taken, and handed over before that ends: a store never has attributes which tell of names and bytes that it has not.
//!
//! *Locking.* A batch takes the turns of all inodes that it is about in ascending order of their
//! numbers, and has them while it is handed over. Only attributes are read and changed under them.

use crate::primitive::{Mutex, MutexGuard};

/// What takes turns at the store.
pub(crate) trait HasTurn {
    /// What tells it from others.
    fn number(&self) -> u64;

    /// Its turn.
    fn turn(&self) -> &Mutex<()>;
}

/// Turns that were taken, until this is dropped.
pub(crate) struct Taken<'t, const N: usize>([Option<MutexGuard<'t, ()>>; N]);

/// Waits until nobody else hands over attributes of any of these. One may be there twice.
#[inline]
pub(crate) fn take<'t, T: HasTurn, const N: usize>(mut whose: [&'t T; N]) -> Taken<'t, N> {
    if N > 1 {
        whose.sort_unstable_by_key(|one| one.number());
    }
    let mut last = None;
    Taken(whose.map(|one| {
        let again = last.replace(one.number()) == Some(one.number());
        (!again).then(|| one.turn().lock())
    }))
}
