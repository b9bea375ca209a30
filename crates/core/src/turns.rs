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

/// Turns that were taken: those of nearly every batch without memory of their own.
#[derive(Default)]
pub(crate) struct Taken<'t> {
    few: [Option<MutexGuard<'t, ()>>; FEW],
    more: Vec<MutexGuard<'t, ()>>,
}

const FEW: usize = 4;

impl<'t> Taken<'t> {
    fn add(&mut self, turn: MutexGuard<'t, ()>) {
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(turn),
            None => self.more.push(turn),
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.few.iter().flatten().count() + self.more.len()
    }
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self((0..SHARDS).map(|_| Padded(Mutex::new(()))).collect())
    }

    /// As [`Turns::take`], if nobody else has any of them at this moment.
    pub(crate) fn try_take(&self, batch: &[Change<'_>]) -> Option<Taken<'_>> {
        let mut taken = Taken::default();
        for shard in wanted(batch) {
            taken.add(self.0[shard].try_lock()?);
        }
        Some(taken)
    }

    /// Waits until nobody else hands over attributes of an inode that is in this batch.
    pub(crate) fn take(&self, batch: &[Change<'_>]) -> Taken<'_> {
        let mut taken = Taken::default();
        for shard in wanted(batch) {
            taken.add(self.0[shard].lock());
        }
        taken
    }
}

/// The shards of the inodes whose attributes are in this batch, ascending.
fn wanted(batch: &[Change<'_>]) -> impl Iterator<Item = usize> {
    let mut shards = batch.iter().fold(0_u64, |shards, change| match change {
        Change::Create { inode, .. } | Change::Attributes { inode } => {
            shards | 1 << (inode.ino.0 % SHARDS as u64)
        }
        _ => shards,
    });
    std::iter::from_fn(move || {
        let lowest = shards.trailing_zeros() as usize;
        shards &= shards.checked_sub(1)?;
        Some(lowest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::InodeRecord;
    use crate::types::{FileType, Ino, Time};

    fn record(ino: u64) -> InodeRecord {
        InodeRecord {
            ino: Ino(ino),
            kind: FileType::Regular,
            perm: 0o644,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            atime: Time(0),
            mtime: Time(0),
            ctime: Time(0),
            btime: Time(0),
            parent: Ino(1),
            xattrs: false,
        }
    }

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
        let create = |ino| Change::Create {
            inode: record(ino),
            target: None,
        };
        let many: Vec<Change<'_>> = (1..=9).chain(60..70).map(create).collect();
        let taken = turns.take(&many);
        // 65 to 69 are in the shards of 1 to 5.
        assert_eq!(taken.len(), 9 + 5);
        assert!(turns.try_take(&many[3..4]).is_none());
        drop(taken);
        assert_eq!(
            turns.try_take(&many[3..4]).map(|taken| taken.len()),
            Some(1)
        );
    }
}
