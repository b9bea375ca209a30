//! Opening a volume: superblock, bitmaps, journal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdfast_core::Memory;
use holdfast_device::{BlockDevice, ReadRequest};
use holdfast_sync::ShardedCounter;
use holdfast_types::Ino;
use parking_lot::Mutex;

use super::checkpoint::{checkpoint, write_superblock};
use super::commit::{make_durable, write_behind};
use super::counters::Counters;
use super::high_water::HighWater;
use super::load::{Blocks, Metered, StoreReader};
use super::memtable::{FreezeBarrier, Layers, NameHasher, Roots};
use super::node_counts::note_trees;
use super::orphans::end_orphans;
use super::probe::{fits, has_all, may_change, read_superblock};
use super::replay::replay;
use super::reservation::{Budget, Pool, changes_of};
use super::stop::Stop;
use super::survey::Survey;
use super::worker::Worker;
use super::writeback::FilePreallocations;
use super::{Inner, Promptness, VolumeStore};
use crate::block::BLOCK;
use crate::error::Result;
use crate::journal::Journal;
use crate::space::{self, Layout, Loader, Space};
use crate::superblock::{SLOTS, Superblock};
use crate::tree::NodeCache;

/// Bitmaps per read batch.
const BITMAPS: usize = 256;
/// Up to so many reads of bitmaps are done before the open returns; with more they come later.
const AT_ONCE: u64 = 2;

/// How to open a volume.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Bytes of tree nodes kept in memory.
    pub cache: usize,
    /// Changes are committed within this time; if absent, only on request. On a device that says
    /// [which cache](BlockDevice::cache_identity) holds unflushed writes, they are also written
    /// within a second, so that a killed process loses no more.
    pub commit_every: Option<Duration>,
    /// Inode numbers that a crash may skip, at least: so many can be allocated before the journal
    /// needs another mark.
    pub numbers_reserved: u64,
    /// Bytes of changes that a replay keeps in memory before it checkpoints. If absent, the share
    /// of changes in the process's memory budget.
    pub changes: Option<u64>,
}

impl OpenOptions {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        cache: 64 << 20,
        commit_every: Some(Duration::from_secs(5)),
        numbers_reserved: 65_536,
        changes: None,
    };
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl VolumeStore {
    /// Opens the volume on a device, in the state of the last commit.
    ///
    /// # Errors
    /// [`NoVolume`](crate::Error::NoVolume) or [`Superblock`](crate::Error::Superblock) if there is
    /// none; [`CutShort`](crate::Error::CutShort);
    /// [`ReadOnlyFeatures`](crate::Error::ReadOnlyFeatures); errors of the device, and of what is
    /// damaged.
    pub fn open(device: Arc<dyn BlockDevice>, options: &OpenOptions) -> Result<Self> {
        may_change(&device)?;
        let metered = Arc::new(Metered::new(device));
        Self::open_over(Arc::clone(&metered) as _, metered, options)
    }

    /// As [`open`](Self::open), on `device`, which is `metered` or lies above it.
    pub(super) fn open_over(
        device: Arc<dyn BlockDevice>,
        metered: Arc<Metered>,
        options: &OpenOptions,
    ) -> Result<Self> {
        fits(&device)?;
        let (superblock, behind) = read_superblock(&device)?;
        has_all(&device, superblock.blocks)?;
        let space = load_space(&device, &superblock)?;
        let blocks = Blocks::new(Arc::clone(&device), superblock.identity());
        let layers = Layers::over(Roots::of_superblock(&superblock));
        let reader = StoreReader {
            freeze_barrier: FreezeBarrier::new(&layers),
            cache: NodeCache::new(blocks, options.cache),
            hasher: NameHasher::new(superblock.hash_seed),
        };
        let (region, from) = (superblock.region(), superblock.journal_position);
        let mut journal = Journal::open(Arc::clone(&device), region, from)?;
        let is_closed = superblock.clean && journal.is_at_end()?;
        if !is_closed {
            space.ready()?;
        }
        let survey = Survey::of(&mut journal, &space)?;
        let journal = journal.finish()?;
        if journal.owes_mark() {
            survey.redo.write(reader.blocks(), &superblock.layout())?;
            // This decides what a written, unflushed commit counts for: its freed blocks may be
            // reused from now on.
            journal.commit(None)?;
        }
        let last_ino = Ino(superblock.last_ino.max(survey.last_ino));
        // The next checkpoint reuses blocks that an older superblock refers to, and may itself be
        // torn. No open may then need the older one.
        write_superblock(reader.blocks(), &superblock, &behind)?;
        let counted = ShardedCounter::new();
        counted.add(superblock.inodes.cast_signed());
        let inner = Arc::new(Inner {
            reader,
            stop: Stop::default(),
            pool: Pool::new(&space)?,
            preallocations: FilePreallocations::new(&space),
            budget: Budget::new(),
            space,
            journal,
            generation: AtomicU64::new(superblock.generation),
            superblock: Mutex::new(superblock),
            checkpointing: Mutex::new(()),
            inodes: counted,
            max_ino: AtomicU64::new(last_ino.0),
            high_water: HighWater::above(last_ino, options.numbers_reserved),
            metered,
            counters: Counters::default(),
            #[cfg(test)]
            recorder: super::reservation::tests::recorder::Recorder::default(),
        });
        if !is_closed {
            // The volume shares no budget yet.
            let own = || changes_of(Memory::of_process().limit());
            let most = options.changes.unwrap_or_else(own);
            replay(&inner, Journal::open(device, region, from)?, most)?;
        }
        note_trees(&inner);
        inner.pool.set_reserve(inner.reader.blocks());
        mark(&inner, false)?;
        end_orphans(&inner)?;
        let worker = Worker::start(&inner, options.commit_every)?;
        Ok(Self {
            inner,
            worker,
            shrinker: OnceLock::new(),
        })
    }

    /// Merges all changes so far into the trees, as the volume does by itself when its journal
    /// fills. The next open has little to replay then.
    ///
    /// # Errors
    /// Those of the device; nothing is written after one.
    pub fn checkpoint(&self) -> Result<()> {
        checkpoint(&self.inner)
    }

    /// Writes everything so far to the device without a flush. It survives this process, and
    /// becomes durable with the next commit. The volume does so by itself. Does nothing on a device
    /// that does not say [which cache](BlockDevice::cache_identity) it writes to.
    ///
    /// # Errors
    /// Those of the device; nothing is written after one.
    pub fn write_behind(&self) -> Result<()> {
        write_behind(&self.inner)
    }

    /// Writes everything so far to the host before this process ends:
    /// [`write_behind`](Self::write_behind), or a commit where that does nothing.
    ///
    /// # Errors
    /// Those of the device; nothing is written after one.
    pub fn write_out(&self) -> Result<()> {
        match self.inner.journal.can_write() {
            true => write_behind(&self.inner),
            false => make_durable(&self.inner, None),
        }
    }

    /// How soon changes are written and flushed unasked.
    #[must_use]
    pub fn promptness(&self) -> Promptness {
        self.worker.promptness
    }

    /// Drops all cached tree nodes.
    pub fn drop_nodes(&self) {
        self.inner.reader.cache.clear();
    }

    /// Checkpoints everything and marks the volume clean: the next open replays nothing.
    ///
    /// # Errors
    /// Those of the last checkpoint; the volume is then as after a crash.
    pub fn close(&self) -> Result<()> {
        self.worker.stop();
        checkpoint(&self.inner)?;
        self.inner.stop.end("the volume was closed");
        // No change passes the barrier after this, and no inode number is handed out.
        drop(self.inner.reader.freeze_barrier.close());
        mark(&self.inner, true)?;
        self.inner.reader.blocks().unlock_device();
        Ok(())
    }
}

/// Marks the volume as in use or as closed. While it is in use, numbers up to `high_water` may
/// be allocated.
///
/// Only the first sector of the superblock changes. So a crash tears no superblock beside a
/// *clean* one: a torn one was damaged.
fn mark(store: &Inner, clean: bool) -> Result<()> {
    let mut superblock = store.superblock.lock();
    superblock.clean = clean;
    superblock.last_ino = match clean {
        true => store.max_ino.load(Ordering::Relaxed),
        false => store.high_water.latest().0,
    };
    let written = superblock.clone();
    drop(superblock);
    write_superblock(store.reader.blocks(), &written, &SLOTS)
}

/// Loads the allocation bitmaps: now if that takes few reads, else on first use.
fn load_space(device: &Arc<dyn BlockDevice>, superblock: &Superblock) -> Result<Arc<Space>> {
    let (device, layout) = (Arc::clone(device), superblock.layout());
    let read = move |loader: &mut Loader| read_bitmaps(&*device, &layout, loader);
    let space = Space::unread(layout, superblock.generation, superblock.seal, read)?;
    if layout.groups().div_ceil(layout.bundle) <= AT_ONCE {
        space.ready()?;
    }
    Ok(space)
}

/// Reads the bitmaps of all groups. Those of one flex group are adjacent.
fn read_bitmaps(
    device: &dyn BlockDevice,
    layout: &Layout,
    loader: &mut Loader,
) -> Result<(), space::Error> {
    let groups: Vec<u64> = (0..loader.groups()).collect();
    let bundles: Vec<&[u64]> = groups.chunks(layout.bundle as usize).collect();
    for some in bundles.chunks(BITMAPS.div_ceil(layout.bundle as usize)) {
        let mut slots: Vec<Vec<u8>> = some
            .iter()
            .map(|bundle| vec![0; bundle.len() * 2 * BLOCK])
            .collect();
        let mut requests: Vec<ReadRequest<'_>> = some
            .iter()
            .zip(&mut slots)
            .map(|(bundle, slots)| {
                ReadRequest::new(loader.slots(bundle[0])[0] * BLOCK as u64, slots)
            })
            .collect();
        let read = device.read_batch(&mut requests);
        read.map_err(|error| space::Error::Unread {
            reason: error.to_string(),
            errno: error.errno(),
        })?;
        for (bundle, slots) in some.iter().zip(&slots) {
            let (blocks, _) = slots.as_chunks::<BLOCK>();
            for (group, pair) in bundle.iter().zip(blocks.chunks_exact(2)) {
                loader.add(*group, [&pair[0], &pair[1]])?;
            }
        }
    }
    Ok(())
}
