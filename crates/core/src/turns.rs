//! Taking turns at the store: changes of one inode's attributes arrive in the order of their making.
//!
//! *Locking.* The locks of all shards that a batch touches are taken in ascending order and held
//! while the batch is handed over. Nothing but attributes is read under them.

use holdfast_sync::Padded;
use parking_lot::{Mutex, MutexGuard};

use crate::store::Change;

const SHARDS: usize = 64;

/// A lock for every shard of inode numbers.
pub(crate) struct Turns(Box<[Padded<Mutex<()>>]>);

impl Turns {
    pub(crate) fn new() -> Self {
        Self((0..SHARDS).map(|_| Padded(Mutex::new(()))).collect())
    }

    /// As [`Turns::take`], if nobody else has any of them at this moment.
    pub(crate) fn try_take(&self, batch: &[Change<'_>]) -> Option<Vec<MutexGuard<'_, ()>>> {
        wanted(batch)
            .map(|shard| self.0[shard].try_lock())
            .collect()
    }

    /// Waits until nobody else hands over attributes of an inode that is in this batch.
    pub(crate) fn take(&self, batch: &[Change<'_>]) -> Vec<MutexGuard<'_, ()>> {
        wanted(batch).map(|shard| self.0[shard].lock()).collect()
    }
}

/// The shards of the inodes whose attributes are in this batch, ascending.
fn wanted(batch: &[Change<'_>]) -> impl Iterator<Item = usize> {
    let shards = batch.iter().fold(0_u64, |shards, change| match change {
        Change::Create { inode, .. } | Change::Attributes { inode } => {
            shards | 1 << (inode.ino.0 % SHARDS as u64)
        }
        _ => shards,
    });
    (0..SHARDS).filter(move |shard| shards >> shard & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Ino;

    #[test]
    fn only_attributes_take_turns_and_each_shard_once() {
        let turns = Turns::new();
        let leave = |dir| Change::Leave {
            dir: Ino(dir),
            name: b"n",
            cookie: 3,
        };
        assert_eq!(turns.take(&[leave(1), leave(2)]).len(), 0);
        assert_eq!(turns.take(&[Change::Free { ino: Ino(1) }]).len(), 0);
    }
}
