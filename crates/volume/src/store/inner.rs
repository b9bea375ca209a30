//! The owner of a volume's parts: what the rooms above it share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use holdfast_core::store::Failure;
use holdfast_sync::ShardedCounter;
use parking_lot::Mutex;

use super::commit::progress::Progress;
use super::error_callback::Alarm;
use super::high_water::HighWater;
use super::load::SnapshotReader;
use super::load::device::Blocks;
use super::load::metered::Metered;
use super::max_ino_seen::MaxIno;
use super::memtable::barrier::FreezeBarrier;
use super::memtable::hash::NameHasher;
use super::memtable::layers::Layers;
use super::reservation::budget::Budget;
use super::reservation::{Pool, Promises};
use super::tally::Tallies;
use super::writeback::background::Patience;
use super::writeback::preallocation::Ahead;
use crate::Result;
use crate::journal::Journal;
use crate::space::Space;
use crate::superblock::Superblock;
use crate::tree::NodeCache;

/// The parts of an open volume, and what the rooms above share: what the store shares with its worker.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(super) freeze_barrier: FreezeBarrier,
    pub(super) cache: NodeCache<Blocks>,
    pub(super) space: Arc<Space>,
    pub(super) ahead: Ahead,
    pub(super) promises: Promises,
    pub(super) patience: Patience,
    pub(super) progress: Progress,
    pub(super) budget: Budget,
    pub(super) pool: Pool,
    /// Of all trees.
    pub(super) nodes: AtomicU64,
    /// Interior nodes on the way from the root of the highest tree to a leaf.
    pub(super) above: AtomicU64,
    pub(super) journal: Journal,
    pub(super) hasher: NameHasher,
    /// As it was written last.
    pub(super) superblock: Mutex<Superblock>,
    /// Its generation.
    pub(super) generation: AtomicU64,
    pub(super) checkpointing: Mutex<()>,
    pub(super) inodes: ShardedCounter,
    pub(super) met: MaxIno,
    pub(super) high_water: HighWater,
    /// Why nothing is written any more.
    pub(super) stopped: OnceLock<String>,
    /// What callers are told of that, if it was a failure.
    pub(super) failure: Arc<Failure>,
    pub(super) error_callback: Alarm,
    /// The device that all of the above read and write.
    pub(super) metered: Arc<Metered>,
    pub(super) tallies: Tallies,
    #[cfg(test)]
    pub(super) ledger: super::reservation::ledger::Ledger,
}

impl Inner {
    pub(super) fn blocks(&self) -> &Blocks {
        self.cache.source()
    }

    /// Looks for something in the layers and reads the device for it, outside the gate: once more, if blocks of the trees
    /// may have been used again meanwhile. Each time `look` begins anew.
    pub(super) fn read<R>(
        &self,
        mut look: impl FnMut(&SnapshotReader<'_>) -> Result<R>,
    ) -> Result<R> {
        loop {
            let layers = self.freeze_barrier.snapshot();
            let found = look(&self.snapshot_reader(&layers));
            if layers.is_current() {
                return found;
            }
        }
    }

    pub(super) fn snapshot_reader<'l>(&'l self, layers: &'l Layers) -> SnapshotReader<'l> {
        SnapshotReader {
            layers,
            cache: &self.cache,
            hasher: &self.hasher,
        }
    }

    /// The generation that the next checkpoint will have.
    pub(super) fn next_generation(&self) -> u64 {
        // Acquire: pairs with the release below.
        self.generation.load(Ordering::Acquire) + 1
    }

    /// From now on this superblock is the newest.
    pub(super) fn succeed(&self, superblock: Superblock) {
        let mut newest = self.superblock.lock();
        self.generation
            .store(superblock.generation, Ordering::Release);
        *newest = superblock;
    }

    pub(super) fn inodes(&self) -> u64 {
        u64::try_from(self.inodes.sum()).unwrap_or(0)
    }
}
