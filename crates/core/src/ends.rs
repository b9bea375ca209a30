//! What keeps a load from bringing back the past.
//!
//! A load reads an inode's record and then makes it known; in between somebody else may load the
//! same inode, change it and let it go again (or free it). So every end of an inode moves a number,
//! and a load that finds it moved begins anew.
//!
//! *Locking.* A shard's lock is held over the burial of an inode, and over making a loaded one known.
//! Nothing is waited for under it.

use holdfast_sync::Padded;
use parking_lot::{Mutex, MutexGuard};

use crate::types::Ino;

const SHARDS: usize = 64;
/// Neighbours by number mostly end in the same thread: they share a shard.
const RUN: u64 = 64;

fn shard(ino: Ino) -> usize {
    (ino.0 / RUN) as usize % SHARDS
}

/// How many inodes have ended, by shards of their numbers.
pub(crate) struct Ends(Box<[Padded<Mutex<u64>>]>);

impl Ends {
    pub(crate) fn new() -> Self {
        Self((0..SHARDS).map(|_| Padded(Mutex::new(0))).collect())
    }

    /// The count that ends of this inode move. Locked, nobody ends or becomes known.
    pub(crate) fn lock(&self, ino: Ino) -> MutexGuard<'_, u64> {
        self.0[shard(ino)].lock()
    }

    /// All counts, for whoever reads many records at once.
    pub(crate) fn snapshot(&self) -> [u64; SHARDS] {
        std::array::from_fn(|shard| *self.0[shard].lock())
    }

    /// This inode's count in a snapshot.
    pub(crate) fn of(snapshot: &[u64; SHARDS], ino: Ino) -> u64 {
        snapshot[shard(ino)]
    }
}
