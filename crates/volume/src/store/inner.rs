//! The parts of an open volume, shared by its modules and its threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_sync::ShardedCounter;
use parking_lot::Mutex;

use super::counters::Counters;
use super::high_water::HighWater;
use super::load::{Metered, StoreReader};
use super::reservation::{Budget, Pool};
use super::stop::Stop;
use super::writeback::FilePreallocations;
use crate::journal::Journal;
use crate::space::Space;
use crate::superblock::Superblock;

/// The parts of an open volume.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(super) reader: StoreReader,
    pub(super) stop: Stop,
    pub(super) space: Arc<Space>,
    pub(super) preallocations: FilePreallocations,
    pub(super) budget: Budget,
    pub(super) pool: Pool,
    pub(super) journal: Journal,
    /// As last written.
    pub(super) superblock: Mutex<Superblock>,
    /// `superblock.generation`.
    pub(super) generation: AtomicU64,
    pub(super) checkpointing: Mutex<()>,
    pub(super) inodes: ShardedCounter,
    /// The highest inode number ever in use.
    pub(super) max_ino: AtomicU64,
    pub(super) high_water: HighWater,
    /// The device below all of the above.
    pub(super) metered: Arc<Metered>,
    pub(super) counters: Counters,
    #[cfg(test)]
    pub(super) recorder: super::reservation::tests::recorder::Recorder,
}

impl Inner {
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
