//! Opening a volume: superblock, bitmaps, journal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdfast_device::{BlockDevice, Content, ReadRequest, content};
use holdfast_sync::ShardedCounter;
use holdfast_types::Ino;
use parking_lot::Mutex;

use super::error_callback::Alarm;
use super::format::BLOCKS_MIN;
use super::high_water::HighWater;
use super::max_ino_seen::MaxIno;
use super::reservation::{Pool, Promises};
use super::survey::Survey;
use super::tally::Tallies;
use super::{Inner, Promptness, VolumeStore};
use crate::journal::Journal;
use crate::space::{self, Layout, Loader, Space};
use crate::store::commit::progress::Progress;
use crate::store::commit::worker::Worker;
use crate::store::load::device::Blocks;
use crate::store::load::metered::Metered;
use crate::store::memtable::barrier::FreezeBarrier;
use crate::store::memtable::hash::NameHasher;
use crate::store::memtable::layers::{Layers, Roots};
use crate::store::reservation::budget::{self, Budget};
use crate::store::writeback::background::Patience;
use crate::store::writeback::preallocation::Ahead;
use crate::superblock::{SLOTS, SlotError, Superblock};
use crate::tree::{NodeCache, Root};
use crate::{BLOCK, Error, Result};

/// Bitmaps read at once.
const BITMAPS: usize = 256;
/// Reads of bitmaps at most before the first request to a volume is answered. With more they come later.
const AT_ONCE: u64 = 2;

/// How a volume is opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Bytes of tree nodes that are kept in memory.
    pub cache: usize,
    /// Changes are committed after so long, at most; never by itself if absent. On a device that says
    /// [which cache](BlockDevice::cache_identity) holds what was not flushed, they are written within a second, so that a
    /// process that is killed loses no more.
    pub commit_every: Option<Duration>,
    /// Inode numbers that a crash may leave out, at least: so many can be dealt before the journal has to say more.
    pub numbers_ahead: u64,
    /// Bytes of changes that a replay of the journal keeps in memory: what is more is brought into the trees. If absent, the part
    /// that such changes have of the memory of the process.
    pub changes: Option<u64>,
}

impl OpenOptions {
    /// The usual ones.
    pub const DEFAULT: Self = Self {
        cache: 64 << 20,
        commit_every: Some(Duration::from_secs(5)),
        numbers_ahead: 65_536,
        changes: None,
    };
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl OpenOptions {
    /// The first mark of the numbers of inodes.
    fn high_water(&self, last: Ino) -> HighWater {
        HighWater::above(last, self.numbers_ahead, self.commit_every.is_some())
    }
}

impl VolumeStore {
    /// Opens the volume on a device, and brings it to where the last commit left it.
    ///
    /// # Errors
    /// [`Error::NoVolume`], [`Error::Superblock`] if there is none; [`Error::CutShort`]; errors of the device, and of what was
    /// found damaged.
    pub fn open(device: Arc<dyn BlockDevice>, options: &OpenOptions) -> Result<Self> {
        let metered = Arc::new(Metered::new(device));
        Self::open_over(Arc::clone(&metered) as _, metered, options)
    }

    /// As [`open`](Self::open), on this device, which has the one that is `metered` below it or is that one.
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
            // What was only written counts from now on, or never: blocks that it freed may be used again, and those it took.
            journal.commit_now(&())?;
        }
        let last_ino = Ino(superblock.last_ino.max(survey.last_ino));
        let counted = ShardedCounter::new();
        counted.add(superblock.inodes.cast_signed());
        let inner = Arc::new(Inner {
            freeze_barrier: FreezeBarrier::new(&layers),
            cache,
            promises: Promises::new(&space)?,
            pool: Pool::default(),
            ahead: Ahead::new(&space),
            nodes: AtomicU64::new(0),
            above: AtomicU64::new(0),
            patience: Patience::default(),
            progress: Progress::default(),
            budget: Budget::new(),
            space,
            journal,
            hasher,
            generation: AtomicU64::new(superblock.generation),
            superblock: Mutex::new(superblock),
            checkpointing: Mutex::new(()),
            inodes: counted,
            met: MaxIno::starting_at(last_ino),
            high_water: options.high_water(last_ino),
            stopped: OnceLock::new(),
            failure: Arc::default(),
            error_callback: Alarm::default(),
            metered,
            tallies: Tallies::default(),
            #[cfg(test)]
            ledger: super::reservation::ledger::Ledger::default(),
        });
        // Before the trees change.
        inner.catch_up(&behind)?;
        if !is_closed {
            let most = options.changes.unwrap_or_else(budget::changes_of_process);
            inner.replay(Journal::open(device, region, from)?, most)?;
        }
        inner.note_trees();
        inner.set_reserve();
        inner.mark(false)?;
        inner.end_orphans()?;
        let worker = Worker::start(&inner, options.commit_every)?;
        Ok(Self { inner, worker })
    }

    /// Folds everything that changed so far into the trees, as the volume does by itself when its
    /// journal fills: what an opening has to replay is short afterwards.
    ///
    /// # Errors
    /// Those of the device; nothing more is written then.
    pub fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()
    }

    /// Hands everything so far to the device, and flushes nothing: it outlives this process, and becomes durable with
    /// the next commit. The volume does so by itself. Does nothing on a device that does not say
    /// [which cache](BlockDevice::cache_identity) that is.
    ///
    /// # Errors
    /// Those of the device; nothing more is written then.
    pub fn write_behind(&self) -> Result<()> {
        self.inner.write_behind()
    }

    /// Hands everything so far to the host before this process ends: as [`write_behind`](Self::write_behind), or as a commit where
    /// that does nothing.
    ///
    /// # Errors
    /// Those of the device; nothing more is written then.
    pub fn hand_over(&self) -> Result<()> {
        match self.inner.journal.can_write() {
            true => self.inner.write_behind(),
            false => self.inner.make_durable(None),
        }
    }

    /// When it writes and flushes what nobody asks it to.
    #[must_use]
    pub fn promptness(&self) -> Promptness {
        self.worker.promptness()
    }

    /// Forgets the nodes of trees that are in memory: what is asked for next is read anew.
    pub fn drop_nodes(&self) {
        self.inner.cache.clear();
    }

    /// Folds everything into the trees and says so: the next opening has nothing to replay.
    ///
    /// # Errors
    /// Those of the last checkpoint; the volume is then as after a crash.
    pub fn close(&self) -> Result<()> {
        self.worker.stop();
        self.inner.checkpoint()?;
        self.inner.end("the volume was closed");
        // Behind this no change is made any more, and no number shown.
        drop(self.inner.freeze_barrier.close());
        self.inner.mark(true)?;
        self.inner.blocks().unlock_device();
        Ok(())
    }
}

impl Inner {
    /// How high the trees of a volume are that is being opened, and how many nodes they have, at most.
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

    /// Reads what the first requests to a volume did not need: the bitmaps, and how many nodes the trees have.
    ///
    /// # Errors
    /// If the bitmaps cannot be read, or are damaged: that stops the store.
    pub(super) fn read_the_rest(&self) -> Result<()> {
        self.space
            .ready()
            .map_err(|error| self.stop(error.into()))?;
        // Checkpoints change what is counted.
        let _one = self.checkpointing.lock();
        let roots = self.freeze_barrier.pass().roots;
        if !takes_few_reads(&roots) {
            self.nodes.store(self.count_nodes(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// How many nodes the trees have; a tree that is damaged, at most.
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

    /// Writes the superblock to slots that a crash has left behind. The next checkpoint uses blocks that
    /// an older one refers to, and may itself be torn: nobody must have to go back to them.
    fn catch_up(&self, behind: &[u64]) -> Result<()> {
        let superblock = self.superblock.lock().clone();
        for slot in behind {
            self.blocks().write(*slot, &superblock.encode(*slot))?;
            self.blocks().flush()?;
        }
        Ok(())
    }

    /// Says on the device that the volume is in use, and a crash may come; or that it was closed. While it is in use
    /// numbers up to a mark may have been dealt.
    ///
    /// Nothing else changes, and all that does lies in the first sector of the superblock. So beside
    /// one that says *closed* a crash leaves no torn one: if there is one, it was damaged.
    fn mark(&self, clean: bool) -> Result<()> {
        let mut superblock = self.superblock.lock();
        superblock.clean = clean;
        superblock.last_ino = match clean {
            true => self.met.get(),
            false => self.high_water.latest().0,
        };
        let written = superblock.clone();
        drop(superblock);
        self.write_superblock(&written)
    }
}

/// Does it take at most a read of each tree to know how many nodes they have?
fn takes_few_reads(roots: &Roots) -> bool {
    let levels = roots.each().into_iter().flatten();
    levels.map(|root| root.level).max() <= Some(1)
}

/// How many nodes a tree has, at most.
fn most_nodes(root: Root) -> u64 {
    match root.level {
        0 => 1,
        _ => root.records.saturating_add(1),
    }
}

/// Has the device as many blocks as a volume on it?
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

/// Refuses a device on which no single block can be written.
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

/// The newest whole superblock, and the slots that do not hold it.
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

/// Says what a device holds that has no superblock.
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

/// The newest whole superblock of a device.
pub(crate) fn newest_superblock(device: &Arc<dyn BlockDevice>) -> Result<Superblock> {
    read_superblock(device).map(|(newest, _)| newest)
}

/// The space of a volume. Its bitmaps are read now if that takes few reads, and else when they are needed.
fn load_space(device: &Arc<dyn BlockDevice>, superblock: &Superblock) -> Result<Arc<Space>> {
    let (device, layout) = (Arc::clone(device), superblock.layout());
    let read = move |loader: &mut Loader| read_bitmaps(&*device, &layout, loader);
    let space = Space::unread(layout, superblock.generation, superblock.seal, read)?;
    if layout.groups().div_ceil(layout.bundle) <= AT_ONCE {
        space.ready()?;
    }
    Ok(space)
}

/// Reads the bitmaps of all groups: those of a bundle lie together.
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
