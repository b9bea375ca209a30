//! What keeps a load from bringing back the past, and what is remembered of inodes that are not in memory.
//!
//! A load reads an inode's record and then makes it known; in between somebody else may load the
//! same inode, change it and let it go again (or free it). So every end of an inode moves a number,
//! and a load that finds it moved begins anew.
//!
//! Uses that were turned into numbers ([`Node::into_raw`](crate::Node::into_raw)) do not keep an inode in memory, as long as it has a
//! name: they are counted here while it is away.
//!
//! Neighbours by number mostly end in the same thread, and are loaded together: they share a number.
//!
//! *Locking.* A shard's lock is held over the burial of an inode, and over making a loaded one known.
//! Nothing is waited for under it.

use holdfast_sync::{EvictedUses, EvictedUsesLocked, Freeing, Index, Padded, Prepared, Runs};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::inode::Object;
use crate::types::Ino;

pub(crate) const SHARDS: usize = 64;
/// Inodes of neighbouring numbers that share a shard: 2^6.
const TOGETHER: u32 = 6;

/// How many inodes have ended, and how often those are used that are away, by shards of their numbers.
pub(crate) struct Evictions(Box<[Padded<Shard>]>);

#[derive(Default)]
struct Shard {
    evicted_uses: EvictedUses,
    /// Changed with `evicted_uses` locked.
    count: AtomicU64,
}

/// A shard that is locked.
pub(crate) struct Locked<'e> {
    count: &'e AtomicU64,
    evicted_uses: EvictedUsesLocked<'e>,
}

impl Locked<'_> {
    /// How many have ended.
    pub(crate) fn count(&self) -> u64 {
        // Relaxed: it changes under the lock.
        self.count.load(Ordering::Relaxed)
    }

    /// What was read before counts as out of date.
    pub(crate) fn count_up(&mut self) {
        // Release: who sees it in a snapshot sees what its store was told before.
        self.count.store(self.count() + 1, Ordering::Release);
    }

    /// Is this inode, which is not in memory, used by number?
    pub(crate) fn is_used(&self, ino: Ino) -> bool {
        self.evicted_uses.runs().get(ino.0) > 0
    }

    /// An inode leaves memory; its uses by number are counted here from now on.
    pub(crate) fn free(&mut self, index: &Index<Object>, freeing: Freeing<Object>) {
        self.count_up();
        self.evicted_uses.free(index, freeing);
    }

    /// An inode that is about to be made known gets back the uses by number that are counted here.
    pub(crate) fn give_back(&mut self, ino: Ino, inode: Prepared<Object>) -> Prepared<Object> {
        self.evicted_uses.give_back(ino.0, inode)
    }
}

/// What is counted of inodes that are away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Away {
    /// Inodes that are used by number.
    pub(crate) inodes: u64,
    /// Memory that their counts take.
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

    /// Do these share a shard, as neighbours?
    pub(crate) fn share(one: Ino, other: Ino) -> bool {
        one.0 >> TOGETHER == other.0 >> TOGETHER
    }

    /// The shard of this inode. While it is locked, nobody of it ends or becomes known.
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

    /// All counts, for whoever reads many records at once. Whatever ends later moves one of them.
    pub(crate) fn snapshot(&self) -> [u64; SHARDS] {
        // Acquire: see `Locked::count_up`.
        std::array::from_fn(|shard| self.0[shard].0.count.load(Ordering::Acquire))
    }

    /// This inode's count in a snapshot.
    pub(crate) fn of(snapshot: &[u64; SHARDS], ino: Ino) -> u64 {
        snapshot[Self::shard_of(ino)]
    }

    /// Gives back up to so many uses of an inode by number, whether it is in memory or not. `Some`: it has ended with that.
    pub(crate) fn forget(
        &self,
        index: &Index<Object>,
        ino: Ino,
        count: u64,
    ) -> Option<Freeing<Object>> {
        self.shard(ino).evicted_uses.forget(index, ino.0, count)
    }

    /// Is an inode used by number? Never `false` of one that is throughout.
    pub(crate) fn may_be_held(&self, index: &Index<Object>, ino: Ino) -> bool {
        self.shard(ino).evicted_uses.may_be_held(index, ino.0)
    }

    /// What is counted here.
    pub(crate) fn away(&self) -> Away {
        let counts = self.0.iter().map(|shard| {
            let locked = shard.0.evicted_uses.lock();
            (locked.runs().keys(), locked.runs().bytes())
        });
        counts.fold(Away::default(), |sum, (inodes, bytes)| Away {
            inodes: sum.inodes + inodes,
            bytes: sum.bytes + bytes,
        })
    }

    /// Shows all inodes that are counted here, with the number of their uses; nothing is locked meanwhile.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(Ino, u64)) {
        for shard in &self.0 {
            let inodes: Vec<_> = shard.0.evicted_uses.lock().runs().iter().collect();
            inodes
                .into_iter()
                .for_each(|(ino, uses)| visit(Ino(ino), uses));
        }
    }

    /// Some of these inodes, about so many, and where to look for others: all of them come in turn.
    pub(crate) fn some(&self, from: Turn, most: usize) -> (Vec<Ino>, Turn) {
        let (mut inodes, mut turn) = (Vec::new(), from);
        for _ in 0..=SHARDS {
            let locked = self.0[turn.shard].0.evicted_uses.lock();
            let (some, runs) = Runs::some(locked.runs(), turn.behind, most - inodes.len());
            inodes.extend(some.into_iter().map(Ino));
            if inodes.len() >= most {
                turn.behind += runs;
                break;
            }
            turn = Turn {
                shard: (turn.shard + 1) % SHARDS,
                behind: 0,
            };
        }
        (inodes, turn)
    }

    /// Forgets all that is counted of inodes that are away; says of how many that was.
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

/// A place among all that is counted of inodes that are away.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    shard: usize,
    /// Runs of it that were looked at.
    behind: usize,
}
