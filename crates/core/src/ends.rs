//! What keeps a load from bringing back the past.
//!
//! A load reads an inode's record and then makes it known; in between somebody else may load the
//! same inode, change it and let it go again (or free it). So every end of an inode moves a number,
//! and a load that finds it moved begins anew.
//!
//! Neighbours by number mostly end in the same thread, and are loaded together: they share a number.
//!
//! *Locking.* A shard's lock is held over the burial of an inode, and over making a loaded one known.
//! Nothing is waited for under it.

use holdfast_sync::{Bolt, BoltGuard, Padded};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::types::Ino;

pub(crate) const SHARDS: usize = 64;
/// Inodes of neighbouring numbers that share a shard: 2^6.
const TOGETHER: u32 = 6;

/// How many inodes have ended, by shards of their numbers.
pub(crate) struct Ends(Box<[Padded<Shard>]>);

#[derive(Default)]
struct Shard {
    lock: Bolt,
    /// Changed under the lock.
    count: AtomicU64,
}

/// A shard that is locked.
pub(crate) struct Locked<'e> {
    count: &'e AtomicU64,
    _lock: BoltGuard<'e>,
}

impl Locked<'_> {
    /// How many have ended.
    pub(crate) fn count(&self) -> u64 {
        // Relaxed: it changes under the lock.
        self.count.load(Ordering::Relaxed)
    }

    /// One more ends.
    pub(crate) fn count_up(&mut self) {
        // Release: who sees it in a snapshot sees what its store was told before.
        self.count.store(self.count() + 1, Ordering::Release);
    }
}

impl Ends {
    pub(crate) fn new() -> Self {
        Self((0..SHARDS).map(|_| Padded::default()).collect())
    }

    fn shard(ino: Ino) -> usize {
        (ino.0 >> TOGETHER) as usize % SHARDS
    }

    /// Do these share a shard, as neighbours?
    pub(crate) fn share(one: Ino, other: Ino) -> bool {
        one.0 >> TOGETHER == other.0 >> TOGETHER
    }

    /// The shard of this inode. While it is locked, nobody of it ends or becomes known.
    pub(crate) fn lock(&self, ino: Ino) -> Locked<'_> {
        let Shard { lock, count } = &self.0[Self::shard(ino)].0;
        Locked {
            count,
            _lock: lock.lock(),
        }
    }

    /// All counts, for whoever reads many records at once. Whatever ends later moves one of them.
    pub(crate) fn snapshot(&self) -> [u64; SHARDS] {
        // Acquire: see `Locked::count_up`.
        std::array::from_fn(|shard| self.0[shard].0.count.load(Ordering::Acquire))
    }

    /// This inode's count in a snapshot.
    pub(crate) fn of(snapshot: &[u64; SHARDS], ino: Ino) -> u64 {
        snapshot[Self::shard(ino)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_moves_the_count_of_its_neighbours_and_of_few_others() {
        let ends = Ends::new();
        let before = ends.snapshot();
        ends.lock(Ino(70)).count_up();
        let after = ends.snapshot();
        let moved = |ino| Ends::of(&before, Ino(ino)) != Ends::of(&after, Ino(ino));
        assert!((0..4096).filter(|ino| moved(*ino)).eq(64..128));
        assert!(
            moved(70 + 4096),
            "they share a shard, though they are no neighbours"
        );
        assert!(Ends::share(Ino(64), Ino(127)) && !Ends::share(Ino(70), Ino(70 + 4096)));
    }
}
