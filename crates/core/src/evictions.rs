//! Eviction generations, which keep a load from installing a stale inode, and the references of
//! inodes that are not in memory.
//!
//! A load reads an inode's record and then installs the inode. In between another thread may load
//! the same inode, change it, and evict or free it. So every eviction increments a count, and a
//! load that finds the count changed starts over.
//!
//! A reference by number ([`Node::into_raw`](crate::Node::into_raw)) does not keep a linked inode
//! in memory: it is counted here while the inode is evicted.
//!
//! Counts are sharded. Inodes with neighbouring numbers share a shard: they are mostly evicted by
//! the same thread, and loaded together.
//!
//! *Locking.* A shard's lock is held while an inode is removed from the index, and while a loaded
//! one is installed. It is a leaf lock.

use holdfast_sync::{EvictedUses, EvictedUsesLocked, Freeing, Index, Padded, Prepared, Runs};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::inode::Object;
use crate::types::Ino;

pub(crate) const SHARDS: usize = 64;
/// log2 of the neighbouring numbers that share a shard.
const TOGETHER: u32 = 6;

/// Eviction counts, and reference counts of evicted inodes, by shards of their numbers.
pub(crate) struct Evictions(Box<[Padded<Shard>]>);

#[derive(Default)]
struct Shard {
    evicted_uses: EvictedUses,
    /// Number of evictions. Changes only with `evicted_uses` locked.
    count: AtomicU64,
}

/// A locked shard.
pub(crate) struct Locked<'e> {
    count: &'e AtomicU64,
    evicted_uses: EvictedUsesLocked<'e>,
}

impl Locked<'_> {
    /// Number of evictions.
    pub(crate) fn count(&self) -> u64 {
        // Relaxed: changes only under the lock, which the caller holds.
        self.count.load(Ordering::Relaxed)
    }

    /// Makes all records read before stale.
    pub(crate) fn count_up(&mut self) {
        // Release pairs with `snapshot`: a reader of the new count also sees the changes that the
        // store was given before.
        self.count.store(self.count() + 1, Ordering::Release);
    }

    /// Is this inode, which is not in memory, referenced by number?
    pub(crate) fn is_used(&self, ino: Ino) -> bool {
        self.evicted_uses.runs().get(ino.0) > 0
    }

    /// Removes an inode from memory, and keeps its references by number here.
    pub(crate) fn free(&mut self, index: &Index<Object>, freeing: Freeing<Object>) {
        self.count_up();
        self.evicted_uses.free(index, freeing);
    }

    /// Moves the references by number that are kept here to an inode that is about to be installed.
    pub(crate) fn give_back(&mut self, ino: Ino, inode: Prepared<Object>) -> Prepared<Object> {
        self.evicted_uses.give_back(ino.0, inode)
    }
}

/// Totals of the evicted inodes that are referenced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EvictedTotals {
    /// Evicted inodes that are referenced by number.
    pub(crate) inodes: u64,
    /// Bytes of their counts.
    pub(crate) bytes: u64,
}

impl Evictions {
    pub(crate) fn new() -> Self {
        Self((0..SHARDS).map(|_| Padded::default()).collect())
    }

    fn shard_of(ino: Ino) -> usize {
        (ino.0 >> TOGETHER) as usize % SHARDS
    }

    fn shard(&self, ino: Ino) -> &Shard {
        &self.0[Self::shard_of(ino)].0
    }

    /// Locks the shard of this inode. Under the lock no inode of the shard is evicted or installed.
    pub(crate) fn lock(&self, ino: Ino) -> Locked<'_> {
        let Shard {
            evicted_uses,
            count,
        } = self.shard(ino);
        Locked {
            count,
            evicted_uses: evicted_uses.lock(),
        }
    }

    /// All eviction counts, for a read of many records. Every later eviction changes one of them.
    pub(crate) fn snapshot(&self) -> [u64; SHARDS] {
        // Acquire: see `Locked::count_up`.
        std::array::from_fn(|shard| self.0[shard].0.count.load(Ordering::Acquire))
    }

    /// This inode's count in a snapshot.
    pub(crate) fn of(snapshot: &[u64; SHARDS], ino: Ino) -> u64 {
        snapshot[Self::shard_of(ino)]
    }

    /// Drops up to `count` references by number of an inode, in memory or not. `Some`: that was the
    /// last reference, and the caller has to free the inode.
    pub(crate) fn forget(
        &self,
        index: &Index<Object>,
        ino: Ino,
        count: u64,
    ) -> Option<Freeing<Object>> {
        self.shard(ino).evicted_uses.forget(index, ino.0, count)
    }

    /// Is the inode referenced by number? Never `false` for one that is throughout the call.
    pub(crate) fn may_be_held(&self, index: &Index<Object>, ino: Ino) -> bool {
        self.shard(ino).evicted_uses.may_be_held(index, ino.0)
    }

    /// Totals of the references kept here.
    pub(crate) fn away(&self) -> EvictedTotals {
        let counts = self.0.iter().map(|shard| {
            let locked = shard.0.evicted_uses.lock();
            (locked.runs().keys(), locked.runs().bytes())
        });
        counts.fold(EvictedTotals::default(), |sum, (inodes, bytes)| {
            EvictedTotals {
                inodes: sum.inodes + inodes,
                bytes: sum.bytes + bytes,
            }
        })
    }

    /// Calls `visit` for all evicted inodes that are referenced, with their counts; no lock is
    /// held.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(Ino, u64)) {
        for shard in &self.0 {
            let inodes: Vec<_> = shard.0.evicted_uses.lock().runs().iter().collect();
            inodes
                .into_iter()
                .for_each(|(ino, uses)| visit(Ino(ino), uses));
        }
    }

    /// About `most` of these inodes from `from` on, and where to continue: repeated calls return
    /// all of them round-robin.
    pub(crate) fn some(&self, from: Cursor, most: usize) -> (Vec<Ino>, Cursor) {
        let (mut inodes, mut cursor) = (Vec::new(), from);
        for _ in 0..=SHARDS {
            let locked = self.0[cursor.shard].0.evicted_uses.lock();
            let (some, runs) = Runs::some(locked.runs(), cursor.behind, most - inodes.len());
            inodes.extend(some.into_iter().map(Ino));
            if inodes.len() >= most {
                cursor.behind += runs;
                break;
            }
            cursor = Cursor {
                shard: (cursor.shard + 1) % SHARDS,
                behind: 0,
            };
        }
        (inodes, cursor)
    }

    /// Drops all references kept here; returns the number of inodes.
    pub(crate) fn forget_all(&self) -> u64 {
        let shards = self.0.iter().map(|shard| {
            let mut locked = shard.0.evicted_uses.lock();
            let inodes = locked.runs().keys();
            locked.clear();
            inodes
        });
        shards.sum()
    }
}

/// A position of a round-robin walk over the shards.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    shard: usize,
    /// Runs of the shard that were visited.
    behind: usize,
}
