//! Opening a volume: superblock, bitmaps, journal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdfast_core::Memory;
use holdfast_device::{BlockDevice, Content, ReadRequest, content};
use holdfast_sync::ShardedCounter;
use holdfast_types::Ino;
use parking_lot::Mutex;

use super::counters::Counters;
use super::error_callback::ErrorCallback;
use super::format::BLOCKS_MIN;
use super::high_water::HighWater;
use super::reservation::{PageReservations, Pool};
use super::survey::Survey;
use super::{Inner, Promptness, VolumeStore};
use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::space::{self, Layout, Loader, Space};
use crate::store::commit::progress::Progress;
use crate::store::commit::worker::Worker;
use crate::store::load::device::Blocks;
use crate::store::load::metered::Metered;
use crate::store::memtable::barrier::FreezeBarrier;
use crate::store::memtable::hash::NameHasher;
use crate::store::memtable::layers::{Layers, Roots};
use crate::store::reservation::budget::{Budget, changes_of};
use crate::store::writeback::preallocation::FilePreallocations;
use crate::superblock::{SLOTS, SlotError, Superblock};
use crate::tree::{NodeCache, Root};

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
    /// [`Error::NoVolume`] or [`Error::Superblock`] if there is none; [`Error::CutShort`];
    /// [`Error::ReadOnlyFeatures`]; errors of the device, and of what is damaged.
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
        let cache = NodeCache::new(blocks, options.cache);
        let hasher = NameHasher::new(superblock.hash_seed);
        let layers = Layers::over(Roots::of_superblock(&superblock));
        let (region, from) = (superblock.region(), superblock.journal_position);
        let mut journal = Journal::open(Arc::clone(&device), region, from)?;
        let is_closed = superblock.clean && journal.is_at_end()?;
        if !is_closed {
            space.ready()?;
        }
        let survey = Survey::of(&mut journal, &space)?;
        let journal = journal.finish()?;
        if journal.owes_mark() {
            survey.redo.write(cache.source(), &superblock.layout())?;
            // This decides what a written, unflushed commit counts for: its freed blocks may be
            // reused from now on.
            journal.commit(None)?;
        }
        let last_ino = Ino(superblock.last_ino.max(survey.last_ino));
        let counted = ShardedCounter::new();
        counted.add(superblock.inodes.cast_signed());
        let inner = Arc::new(Inner {
            freeze_barrier: FreezeBarrier::new(&layers),
            cache,
            page_reservations: PageReservations::new(&space)?,
            pool: Pool::default(),
            preallocations: FilePreallocations::new(&space),
            nodes: AtomicU64::new(0),
            above: AtomicU64::new(0),
            progress: Progress::default(),
            budget: Budget::new(),
            space,
            journal,
            hasher,
            generation: AtomicU64::new(superblock.generation),
            superblock: Mutex::new(superblock),
            checkpointing: Mutex::new(()),
            inodes: counted,
            max_ino: AtomicU64::new(last_ino.0),
            high_water: HighWater::above(last_ino, options.numbers_reserved),
            stopped: OnceLock::new(),
            failure: Arc::default(),
            error_callback: ErrorCallback::default(),
            metered,
            counters: Counters::default(),
            #[cfg(test)]
            recorder: super::reservation::tests::recorder::Recorder::default(),
        });
        // Before the trees change.
        inner.catch_up(&behind)?;
        if !is_closed {
            // The volume shares no budget yet.
            let own = || changes_of(Memory::of_process().limit());
            let most = options.changes.unwrap_or_else(own);
            inner.replay(Journal::open(device, region, from)?, most)?;
        }
        inner.note_trees();
        inner.set_reserve();
        inner.mark(false)?;
        inner.end_orphans()?;
        let worker = Worker::start(&inner, options.commit_every)?;
        Ok(Self { inner, worker })
    }

    /// Merges all changes so far into the trees, as the volume does by itself when its journal
    /// fills. The next open has little to replay then.
    ///
    /// # Errors
    /// Those of the device; nothing is written after one.
    pub fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()
    }

    /// Writes everything so far to the device without a flush. It survives this process, and
    /// becomes durable with the next commit. The volume does so by itself. Does nothing on a device
    /// that does not say [which cache](BlockDevice::cache_identity) it writes to.
    ///
    /// # Errors
    /// Those of the device; nothing is written after one.
    pub fn write_behind(&self) -> Result<()> {
        self.inner.write_behind()
    }

    /// Writes everything so far to the host before this process ends:
    /// [`write_behind`](Self::write_behind), or a commit where that does nothing.
    ///
    /// # Errors
    /// Those of the device; nothing is written after one.
    pub fn write_out(&self) -> Result<()> {
        match self.inner.journal.can_write() {
            true => self.inner.write_behind(),
            false => self.inner.make_durable(None),
        }
    }

    /// How soon changes are written and flushed unasked.
    #[must_use]
    pub fn promptness(&self) -> Promptness {
        self.worker.promptness()
    }

    /// Drops all cached tree nodes.
    pub fn drop_nodes(&self) {
        self.inner.cache.clear();
    }

    /// Checkpoints everything and marks the volume clean: the next open replays nothing.
    ///
    /// # Errors
    /// Those of the last checkpoint; the volume is then as after a crash.
    pub fn close(&self) -> Result<()> {
        self.worker.stop();
        self.inner.checkpoint()?;
        self.inner.end("the volume was closed");
        // No change passes the barrier after this, and no inode number is handed out.
        drop(self.inner.freeze_barrier.close());
        self.inner.mark(true)?;
        self.inner.blocks().unlock_device();
        Ok(())
    }
}

impl Inner {
    /// Notes the heights and (upper bounds of) the node counts of the trees at open.
    fn note_trees(&self) {
        let roots = self.freeze_barrier.pass().roots;
        let nodes = match takes_few_reads(&roots) {
            true => self.count_nodes(),
            false => {
                let most = roots.each().into_iter().flatten().map(most_nodes);
                most.fold(0, u64::saturating_add)
            }
        };
        self.nodes.store(nodes, Ordering::Relaxed);
        self.note_height(&roots);
    }

    /// Reads what the first requests did not need: the bitmaps, and the node counts of the trees.
    ///
    /// # Errors
    /// If the bitmaps are unreadable or damaged. That stops the store.
    pub(super) fn read_the_rest(&self) -> Result<()> {
        self.space
            .ready()
            .map_err(|error| self.stop(error.into()))?;
        // Checkpoints change the counts.
        let _one = self.checkpointing.lock();
        let roots = self.freeze_barrier.pass().roots;
        if !takes_few_reads(&roots) {
            self.nodes.store(self.count_nodes(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// The number of nodes of all trees; an upper bound for a damaged tree.
    fn count_nodes(&self) -> u64 {
        let layers = self.freeze_barrier.snapshot();
        let snapshot_reader = self.snapshot_reader(&layers);
        let counts = [
            snapshot_reader.inodes().nodes(),
            snapshot_reader.entries().nodes(),
            snapshot_reader.hashes().nodes(),
            snapshot_reader.data().nodes(),
            snapshot_reader.orphans().nodes(),
        ];
        let roots = layers.roots.each();
        let counts = counts.into_iter().zip(roots);
        counts
            .map(|(count, root)| count.unwrap_or_else(|_| root.map_or(0, most_nodes)))
            .fold(0, u64::saturating_add)
    }

    /// Writes the superblock to the slots that a crash left behind. The next checkpoint reuses
    /// blocks that an older superblock refers to, and may itself be torn. No open may then need the
    /// older one.
    fn catch_up(&self, behind: &[u64]) -> Result<()> {
        let superblock = self.superblock.lock().clone();
        for slot in behind {
            self.blocks().write(*slot, &superblock.encode(*slot))?;
            self.blocks().flush()?;
        }
        Ok(())
    }

    /// Marks the volume as in use or as closed. While it is in use, numbers up to `high_water` may
    /// be allocated.
    ///
    /// Only the first sector of the superblock changes. So a crash tears no superblock beside a
    /// *clean* one: a torn one was damaged.
    fn mark(&self, clean: bool) -> Result<()> {
        let mut superblock = self.superblock.lock();
        superblock.clean = clean;
        superblock.last_ino = match clean {
            true => self.max_ino.load(Ordering::Relaxed),
            false => self.high_water.latest().0,
        };
        let written = superblock.clone();
        drop(superblock);
        self.write_superblock(&written)
    }
}

/// Does counting the nodes take at most one read a tree?
fn takes_few_reads(roots: &Roots) -> bool {
    let levels = roots.each().into_iter().flatten();
    levels.map(|root| root.level).max() <= Some(1)
}

/// An upper bound of the nodes of a tree.
fn most_nodes(root: Root) -> u64 {
    match root.level {
        0 => 1,
        _ => root.records.saturating_add(1),
    }
}

/// Checks that the device is as long as the volume on it.
fn has_all(device: &Arc<dyn BlockDevice>, blocks: u64) -> Result<()> {
    let found = device.size() / BLOCK as u64;
    if found < blocks {
        return Err(Error::CutShort {
            device: device.describe(),
            found,
            expected: blocks,
        });
    }
    Ok(())
}

/// Refuses a volume with read-only compatible features: this version knows none.
pub(crate) fn may_change(device: &Arc<dyn BlockDevice>) -> Result<()> {
    match read_superblock(device)?.0.features.read_only_compatible {
        0 => Ok(()),
        features => Err(Error::ReadOnlyFeatures {
            device: device.describe(),
            features,
        }),
    }
}

/// Refuses a device that cannot write a single block.
pub(super) fn fits(device: &Arc<dyn BlockDevice>) -> Result<()> {
    let alignment = device.alignment();
    if alignment > BLOCK as u64 {
        return Err(Error::Geometry(format!(
            "{} moves no less than {alignment} bytes at once, and a volume has blocks of {BLOCK}",
            device.describe()
        )));
    }
    Ok(())
}

/// The newest valid superblock, and the slots that do not hold it.
pub(super) fn read_superblock(device: &Arc<dyn BlockDevice>) -> Result<(Superblock, Vec<u64>)> {
    let mut bytes = [0; SLOTS.len() * BLOCK];
    let there = device.size().min(bytes.len() as u64) as usize / BLOCK * BLOCK;
    device.read(0, &mut bytes[..there])?;
    let (blocks, _) = bytes[..there].as_chunks::<BLOCK>();
    let [one, other] = SLOTS.map(|slot| match blocks.get(slot as usize) {
        Some(block) => Superblock::decode(block, slot),
        None => Err(SlotError::Magic),
    });
    let newest = match (&one, &other) {
        (Ok(one), Ok(other)) if other.generation > one.generation => other,
        (Ok(one), _) => one,
        (Err(_), Ok(other)) => other,
        (Err(SlotError::Magic), Err(SlotError::Magic)) => return Err(no_volume(device)),
        (Err(one), Err(other)) => {
            return Err(Error::Superblock {
                device: device.describe(),
                slots: [one.clone(), other.clone()],
            });
        }
    };
    let slots = SLOTS.into_iter().zip([&one, &other]);
    let behind = slots.filter(|(_, found)| found.as_ref() != Ok(newest));
    let behind = behind.map(|(slot, _)| slot).collect();
    Ok((newest.clone(), behind))
}

/// Names what a device without a superblock holds.
fn no_volume(device: &Arc<dyn BlockDevice>) -> Error {
    let instead = match content(&**device) {
        _ if device.size() < BLOCKS_MIN * BLOCK as u64 => ": it is too short for one".to_owned(),
        Ok(Content::Known(name)) => format!(", but {name}"),
        Ok(Content::Nothing) => ": it begins with zeros".to_owned(),
        Ok(Content::Unknown) => ": it begins with something else".to_owned(),
        Err(error) => format!(", or none that can be read: {error}"),
    };
    Error::NoVolume {
        device: device.describe(),
        instead,
    }
}

/// The newest valid superblock of a device.
pub(crate) fn newest_superblock(device: &Arc<dyn BlockDevice>) -> Result<Superblock> {
    read_superblock(device).map(|(newest, _)| newest)
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
