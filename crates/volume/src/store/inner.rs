//! The parts of an open volume, shared by its modules and its threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use holdfast_core::store::Failure;
use holdfast_sync::ShardedCounter;
use parking_lot::Mutex;

use super::commit::progress::Progress;
use super::counters::Counters;
use super::error_callback::ErrorCallback;
use super::high_water::HighWater;
use super::load::SnapshotReader;
use super::load::device::Blocks;
use super::load::metered::Metered;
use super::memtable::barrier::FreezeBarrier;
use super::memtable::hash::NameHasher;
use super::memtable::layers::Layers;
use super::reservation::budget::Budget;
use super::reservation::{PageReservations, Pool};
use super::writeback::preallocation::FilePreallocations;
use crate::error::Result;
use crate::journal::Journal;
use crate::space::Space;
use crate::superblock::Superblock;
use crate::tree::NodeCache;

/// The parts of an open volume.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(super) freeze_barrier: FreezeBarrier,
    pub(super) cache: NodeCache<Blocks>,
    pub(super) space: Arc<Space>,
    pub(super) preallocations: FilePreallocations,
    pub(super) page_reservations: PageReservations,
    pub(super) progress: Progress,
    pub(super) budget: Budget,
    pub(super) pool: Pool,
    /// Nodes of all trees.
    pub(super) nodes: AtomicU64,
    /// Interior nodes between the root of the highest tree and a leaf.
    pub(super) above: AtomicU64,
    pub(super) journal: Journal,
    pub(super) hasher: NameHasher,
    /// As last written.
    pub(super) superblock: Mutex<Superblock>,
    /// `superblock.generation`.
    pub(super) generation: AtomicU64,
    pub(super) checkpointing: Mutex<()>,
    pub(super) inodes: ShardedCounter,
    /// The highest inode number ever in use.
    pub(super) max_ino: AtomicU64,
    pub(super) high_water: HighWater,
    /// Why nothing is written any more.
    pub(super) stopped: OnceLock<String>,
    /// The failure that callers see, if that was a failure.
    pub(super) failure: Arc<Failure>,
    pub(super) error_callback: ErrorCallback,
    /// The device below all of the above.
    pub(super) metered: Arc<Metered>,
    pub(super) counters: Counters,
    #[cfg(test)]
    pub(super) recorder: super::reservation::tests::recorder::Recorder,
}

impl Inner {
    pub(super) fn blocks(&self) -> &Blocks {
        self.cache.source()
    }

    /// Runs `look` over a snapshot of the layers, outside the barrier. If tree blocks may have been
    /// reused meanwhile, `look` starts over.
    pub(super) fn read<R>(
        &self,
        mut look: impl FnMut(&SnapshotReader<'_>) -> Result<R>,
    ) -> Result<R> {
        hop!();
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

    /// The generation of the next checkpoint.
    pub(super) fn next_generation(&self) -> u64 {
        // Acquire: pairs with the release below.
        self.generation.load(Ordering::Acquire) + 1
    }

    /// Makes this the newest superblock.
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
