//! The volume as the core's store.
//!
//! What changes is kept in an *overlay* in memory and in the journal; a commit makes the journal
//! durable, a checkpoint folds the overlay into the trees. Reads look into the overlays, then into the
//! trees.
//!
//! *Invariants.* The overlays over the trees are what all batches so far made. The journal from the
//! superblock's position on, replayed over its trees, makes what was committed last. An error that
//! leaves any doubt stops all writing.
//!
//! *Locking.* The journal's own lock (a commit), the gate, a shard of an overlay, space. Every change passes the gate;
//! a commit's cut and the end of a checkpoint close it. The device is read with none of them: readers work with a
//! snapshot of the layers, and what a change needs is read before it passes.

mod alarm;
mod apply;
mod behind;
mod checkpoint;
mod commit;
mod contract;
mod extents;
mod file;
mod format;
mod high_water;
mod highest;
mod inspect;
mod load;
mod memtable;
mod open;
mod orphans;
mod replay;
mod reservation;
mod resize;
mod stop;
mod upgrade;
mod writeback;

pub(crate) use checkpoint::records;
pub use commit::timer::Promptness;
pub use extents::FileExtent;
pub use file::content::INLINE_MAX;
pub use format::{BLOCKS_MIN, FormatOptions, format};
pub use inspect::{Info, superblock};
pub(crate) use memtable::hash;
pub use open::OpenOptions;
pub(crate) use open::newest_superblock;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use holdfast_core::store::Failure;
use holdfast_sync::ShardedCounter;
use holdfast_sync::frame::Supplier;
use parking_lot::Mutex;

use crate::Result;
use crate::journal::Journal;
use crate::space::Space;
use crate::superblock::Superblock;
use crate::tree::NodeCache;
use alarm::Alarm;
use commit::progress::Progress;
use commit::worker::Worker;
use hash::NameHasher;
use high_water::HighWater;
use highest::Highest;
use load::Finder;
use load::device::Blocks;
use load::pins::Pins;
use memtable::barrier::Gate;
use memtable::layers::Layers;
use reservation::budget::Budget;
use reservation::{Pool, Promises};
use writeback::background::Patience;
use writeback::preallocation::Ahead;

/// An open volume.
///
/// It commits every few seconds, and folds when the journal fills. Dropped it is as after a crash;
/// [`VolumeStore::close`] ends it cleanly.
#[derive(Debug)]
pub struct VolumeStore {
    inner: Arc<Inner>,
    worker: Worker,
    /// Of memory for the pages that are written, where there is enough.
    supplier: Mutex<Option<Supplier>>,
}

/// What the store shares with its worker.
#[derive(Debug)]
pub(crate) struct Inner {
    gate: Gate,
    cache: NodeCache<Blocks>,
    space: Arc<Space>,
    ahead: Ahead,
    pins: Pins,
    promises: Promises,
    patience: Patience,
    progress: Progress,
    budget: Budget,
    pool: Pool,
    /// Of all trees.
    nodes: AtomicU64,
    /// Interior nodes on the way from the root of the highest tree to a leaf.
    above: AtomicU64,
    journal: Journal,
    hasher: NameHasher,
    /// As it was written last.
    superblock: Mutex<Superblock>,
    /// Its generation.
    generation: AtomicU64,
    checkpointing: Mutex<()>,
    inodes: ShardedCounter,
    met: Highest,
    high_water: HighWater,
    /// Why nothing is written any more.
    stopped: OnceLock<String>,
    /// What callers are told of that, if it was a failure.
    failure: Arc<Failure>,
    alarm: Alarm,
    #[cfg(test)]
    ledger: reservation::ledger::Ledger,
}

impl Inner {
    fn blocks(&self) -> &Blocks {
        self.cache.source()
    }

    /// Looks for something in the layers and reads the device for it, outside the gate: once more, if blocks of the trees
    /// may have been used again meanwhile. Each time `look` begins anew.
    fn read<R>(&self, mut look: impl FnMut(&Finder<'_>) -> Result<R>) -> Result<R> {
        loop {
            let layers = self.gate.snapshot();
            let found = look(&self.finder(&layers));
            if layers.is_current() {
                return found;
            }
        }
    }

    fn finder<'l>(&'l self, layers: &'l Layers) -> Finder<'l> {
        Finder {
            layers,
            cache: &self.cache,
            hasher: &self.hasher,
        }
    }

    /// The generation that the next checkpoint will have.
    fn next_generation(&self) -> u64 {
        // Acquire: pairs with the release below.
        self.generation.load(Ordering::Acquire) + 1
    }

    /// From now on this superblock is the newest.
    fn succeed(&self, superblock: Superblock) {
        let mut newest = self.superblock.lock();
        self.generation
            .store(superblock.generation, Ordering::Release);
        *newest = superblock;
    }

    fn inodes(&self) -> u64 {
        u64::try_from(self.inodes.sum()).unwrap_or(0)
    }
}
