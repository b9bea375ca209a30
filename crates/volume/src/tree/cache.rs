//! Nodes in memory: read once, checked once, kept while they are used.
//!
//! A bounded cache in shards. New nodes enter a small queue; those asked for again before they
//! reach its end move to the main queue, where each further use earns another round (S3-FIFO
//! without its ghosts: Yang et al., SOSP 2023). So a scan of everything passes through the small
//! queue and leaves the rest alone.
//!
//! What is read for a scan of all records (`Use::Once`) is forgotten when the scan is past it,
//! unless another reader asked for it meanwhile, and is not counted until then: it takes no memory
//! from what other caches hold.
//!
//! *Invariants.* Nodes are found by block number and birth generation: a block that is used
//! again has another generation, so what is cached never goes stale. Cached nodes have been
//! verified. The bytes kept stay within the bound, but for one node a shard; within one that was lowered as others come, or when
//! they are reclaimed.
//!
//! *Locking.* One lock a shard, a leaf: nothing is read or waited for under it.

use super::error::{Defect, Error, Result};
use super::lookup::child;
use super::node::{BLOCK, Node};
use super::pointer::{ADDRESS_BITS, NODE_BLOCKS_MAX, Pointer};
use super::readahead_states::ReadaheadStates;
use super::record::{Key, Record};
use foldhash::fast::RandomState;
use holdfast_types::Errno;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Where nodes are read from.
pub trait NodeSource: Send + Sync {
    /// Number of blocks there are: a pointer beyond them is damaged.
    fn blocks(&self) -> u64;

    /// The identity of the volume: nodes of another one are none of this one, whatever they say.
    fn volume(&self) -> u32;

    /// Reads the blocks from `block` on into `bytes`, whose length is a multiple of 4096.
    ///
    /// # Errors
    /// What the device says.
    fn read(&self, block: u64, bytes: &mut [u8]) -> Result<(), Errno>;

    /// Reads several nodes; better in one batch than one after the other.
    ///
    /// # Errors
    /// What the device says of any of them.
    fn read_batch(&self, reads: &mut [(u64, Box<[u8]>)]) -> Result<(), Errno> {
        reads
            .iter_mut()
            .try_for_each(|(block, bytes)| self.read(*block, bytes))
    }
}

impl<S: NodeSource + ?Sized> NodeSource for &S {
    fn blocks(&self) -> u64 {
        (**self).blocks()
    }

    fn volume(&self) -> u32 {
        (**self).volume()
    }

    fn read(&self, block: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        (**self).read(block, bytes)
    }

    fn read_batch(&self, reads: &mut [(u64, Box<[u8]>)]) -> Result<(), Errno> {
        (**self).read_batch(reads)
    }
}

impl<S: NodeSource + ?Sized> NodeSource for Arc<S> {
    fn blocks(&self) -> u64 {
        (**self).blocks()
    }

    fn volume(&self) -> u32 {
        (**self).volume()
    }

    fn read(&self, block: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        (**self).read(block, bytes)
    }

    fn read_batch(&self, reads: &mut [(u64, Box<[u8]>)]) -> Result<(), Errno> {
        (**self).read_batch(reads)
    }
}

const SHARDS: usize = 16;
/// Uses that a cached node remembers.
const USES_MAX: u8 = 3;
/// The part of a shard that the small queue may take: one in this many bytes.
const SMALL_PART: usize = 10;
/// The part of all bytes that is read ahead at once: less than the small queue takes, so that what came is still
/// there when it is used.
const AHEAD_PART: usize = 16;
/// Forgotten places that the queues of a shard may keep.
const STALE_MAX: usize = 64;

/// How often nodes were found in memory, and how often not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Found.
    pub hits: u64,
    /// Read.
    pub misses: u64,
    /// Nodes kept now.
    pub nodes: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Of these the bytes of nodes that were read for a scan alone.
    pub once: usize,
}

/// What a node is loaded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It may be asked for again.
    Again,
    /// A scan that does not come back to it.
    Once,
}

/// A [`NodeSource`] and the nodes of it that are in memory.
#[derive(Debug)]
pub struct NodeCache<S> {
    source: S,
    shards: Box<[Mutex<Shard>]>,
    most: usize,
    /// A hint for who keeps a node: Relaxed.
    shard_bytes: AtomicUsize,
    readahead_states: ReadaheadStates,
}

type Place = (u64, u64);

#[derive(Debug, Default)]
struct Shard {
    held: HashMap<Place, Held, RandomState>,
    small: VecDeque<Place>,
    main: VecDeque<Place>,
    small_bytes: usize,
    bytes: usize,
    once_bytes: usize,
    hits: u64,
    misses: u64,
}

#[derive(Debug)]
struct Held {
    node: Node,
    uses: u8,
    /// In the small queue.
    small: bool,
    /// Read for a scan; no other reader has asked for it.
    once: bool,
}

impl<S: NodeSource> NodeCache<S> {
    /// A cache of at most `bytes` bytes of nodes (and at least one node a shard).
    #[must_use]
    pub fn new(source: S, bytes: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self {
            source,
            shards,
            most: bytes,
            shard_bytes: AtomicUsize::new(bytes / SHARDS),
            readahead_states: ReadaheadStates::default(),
        }
    }

    /// Keeps at most `bytes` bytes of nodes from now on, and never more than it was made for. What is too
    /// much goes as others come.
    pub fn limit(&self, bytes: usize) {
        let shard_bytes = bytes.min(self.most) / SHARDS;
        self.shard_bytes.store(shard_bytes, Relaxed);
    }

    /// The bytes of nodes that it keeps at most now, but for one node a shard.
    pub fn most(&self) -> usize {
        self.shard_bytes.load(Relaxed) * SHARDS
    }

    /// Where the nodes come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Hits, misses and bytes over all shards.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        let mut counts = CacheCounts::default();
        for shard in &self.shards {
            let shard = shard.lock();
            counts.hits += shard.hits;
            counts.misses += shard.misses;
            counts.nodes += shard.held.len();
            counts.bytes += shard.bytes;
            counts.once += shard.once_bytes;
        }
        counts
    }

    /// Makes so many steps towards keeping no more than the [limit](Self::limit), as far as more is kept; says how many nodes went and how
    /// many steps are left.
    pub fn shrink(&self, mut steps: u64) -> (u64, u64) {
        let limit = self.shard_bytes.load(Relaxed);
        let mut gone = 0;
        for shard in &self.shards {
            let mut shard = shard.lock();
            let before = shard.held.len();
            while steps > 0 && shard.bytes > limit {
                shard.evict(limit);
                steps -= 1;
            }
            gone += (before - shard.held.len()) as u64;
        }
        (gone, steps)
    }

    /// Forgets a node that was replaced; merely saves its memory.
    pub fn forget(&self, pointer: Pointer) {
        self.shard(pointer)
            .lock()
            .forget((pointer.block, pointer.birth));
    }

    /// A scan is past this node.
    pub(super) fn pass(&self, node: &Node) {
        let pointer = node.pointer();
        let place = (pointer.block, pointer.birth);
        let mut shard = self.shard(pointer).lock();
        if shard.held.get(&place).is_some_and(|held| held.once) {
            shard.forget(place);
        }
    }

    /// Forgets every node.
    pub fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            let (hits, misses) = (shard.hits, shard.misses);
            *shard = Shard {
                hits,
                misses,
                ..Shard::default()
            };
        }
    }

    fn shard(&self, pointer: Pointer) -> &Mutex<Shard> {
        let mixed = (pointer.block ^ pointer.birth).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.shards[(mixed >> 60) as usize % SHARDS]
    }

    /// The node at `pointer`, which must stand at `level` in a tree of `R`.
    pub(super) fn load<R: Record>(&self, pointer: Pointer, level: u8) -> Result<Node> {
        self.load_for::<R>(Use::Again, pointer, level)
    }

    /// As [`load`](Self::load), for one use or more.
    pub(super) fn load_for<R: Record>(
        &self,
        usage: Use,
        pointer: Pointer,
        level: u8,
    ) -> Result<Node> {
        match self.find::<R>(usage, pointer, level) {
            Some(found) => found,
            None => self.read::<R>(usage, pointer, level),
        }
    }

    /// Child `index` of `parent`, which stands above `level`. If it is not in memory, those behind it come with it that
    /// [`ReadaheadStates`] expects to be asked for next.
    pub(super) fn load_child<R: Record>(
        &self,
        usage: Use,
        parent: &Node,
        index: usize,
        level: u8,
    ) -> Result<Node> {
        let (_, pointer) = child::<R>(parent, index)?;
        if let Some(found) = self.find::<R>(usage, pointer, level) {
            return found;
        }
        let bytes = self.shard_bytes.load(Relaxed) * SHARDS / AHEAD_PART;
        let most = bytes / (usize::from(pointer.blocks).max(1) * BLOCK);
        let left = parent.count() - index;
        let count = (self.readahead_states).follow(parent.pointer(), index, most.min(left));
        if count == 1 {
            return self.read::<R>(usage, pointer, level);
        }
        let behind = (index..index + count).map(|at| Ok(child::<R>(parent, at)?.1));
        self.prefetch::<R>(usage, &behind.collect::<Result<Vec<Pointer>>>()?, level);
        self.load_for::<R>(usage, pointer, level)
    }

    /// A node that is in memory.
    fn find<R: Record>(&self, usage: Use, pointer: Pointer, level: u8) -> Option<Result<Node>> {
        let mut shard = self.shard(pointer).lock();
        let node = shard.find((pointer.block, pointer.birth), usage)?;
        drop(shard);
        // Another tree's, or of another level: verified, but not for this place.
        let fits = node.belongs(R::KIND, level) && node.pointer() == pointer;
        Some(match fits {
            true => Ok(node),
            false => self.load_anew::<R>(pointer, level),
        })
    }

    /// Reads a node that is not in memory, and keeps it.
    fn read<R: Record>(&self, usage: Use, pointer: Pointer, level: u8) -> Result<Node> {
        let node = self.load_anew::<R>(pointer, level)?;
        self.keep(node.clone(), usage);
        Ok(node)
    }

    /// Reads and verifies a node, whatever is in memory.
    pub(super) fn load_anew<R: Record>(&self, pointer: Pointer, level: u8) -> Result<Node> {
        self.check_place(pointer)?;
        let mut bytes = zeroed(pointer);
        let block = pointer.block;
        let read = self.source.read(block, &mut bytes);
        read.map_err(|errno| Error::Device { block, errno })?;
        self.verify::<R>(bytes.into(), pointer, level)
    }

    /// Reads those of `pointers` that are not in memory, as one batch. A hint: what fails here
    /// fails again where somebody waits for the answer.
    pub(super) fn prefetch<R: Record>(&self, usage: Use, pointers: &[Pointer], level: u8) {
        let absent = |pointer: &&Pointer| {
            let held = self
                .shard(**pointer)
                .lock()
                .holds((pointer.block, pointer.birth));
            !held && self.check_place(**pointer).is_ok()
        };
        let missing: Vec<Pointer> = pointers.iter().filter(absent).copied().collect();
        if missing.is_empty() {
            return;
        }
        let mut reads: Vec<(u64, Box<[u8]>)> = missing
            .iter()
            .map(|&pointer| (pointer.block, zeroed(pointer)))
            .collect();
        if self.source.read_batch(&mut reads).is_err() {
            return;
        }
        for (pointer, (_, bytes)) in missing.into_iter().zip(reads) {
            if let Ok(node) = self.verify::<R>(bytes.into(), pointer, level) {
                self.keep(node, usage);
            }
        }
    }

    fn check_place(&self, pointer: Pointer) -> Result<()> {
        let Pointer { block, blocks, .. } = pointer;
        let sound = block > 0
            && (1..=NODE_BLOCKS_MAX).contains(&blocks)
            && block + u64::from(blocks) <= self.source.blocks().min(1 << ADDRESS_BITS);
        if sound {
            Ok(())
        } else {
            Err(Error::corrupt(block, Defect::Pointer))
        }
    }

    fn keep(&self, node: Node, usage: Use) {
        let pointer = node.pointer();
        self.shard(pointer)
            .lock()
            .keep(node, usage, self.shard_bytes.load(Relaxed));
    }

    fn verify<R: Record>(&self, bytes: Arc<[u8]>, pointer: Pointer, level: u8) -> Result<Node> {
        let volume = self.source.volume();
        let node = Node::verify(bytes, volume, pointer, R::KIND, R::Key::LEN, level);
        node.map_err(|defect| Error::corrupt(pointer.block, defect))
    }
}

fn zeroed(pointer: Pointer) -> Box<[u8]> {
    vec![0; usize::from(pointer.blocks) * BLOCK].into()
}

impl Shard {
    fn find(&mut self, place: Place, usage: Use) -> Option<Node> {
        let Some(held) = self.held.get_mut(&place) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        if usage == Use::Again {
            match held.once {
                // Its first use that counts.
                true => self.once_bytes -= held.node.bytes().len(),
                false => held.uses = (held.uses + 1).min(USES_MAX),
            }
            held.once = false;
        }
        Some(held.node.clone())
    }

    fn holds(&self, place: Place) -> bool {
        self.held.contains_key(&place)
    }

    fn keep(&mut self, node: Node, usage: Use, limit: usize) {
        let Pointer { block, birth, .. } = node.pointer();
        let len = node.bytes().len();
        if self.holds((block, birth)) {
            return;
        }
        while self.bytes > 0 && self.bytes + len > limit {
            self.evict(limit);
        }
        self.held.insert(
            (block, birth),
            Held {
                node,
                uses: 0,
                small: true,
                once: usage == Use::Once,
            },
        );
        if usage == Use::Once {
            self.once_bytes += len;
        }
        self.small.push_back((block, birth));
        self.small_bytes += len;
        self.bytes += len;
    }

    /// Makes one step towards dropping a node: drops it, or gives it another round.
    fn evict(&mut self, limit: usize) {
        let small = self.small_bytes > limit / SMALL_PART || self.main.is_empty();
        let queue = if small {
            &mut self.small
        } else {
            &mut self.main
        };
        let Some(place) = queue.pop_front() else {
            return;
        };
        // What was forgotten has left its place in the queue behind.
        let Some(held) = self.held.get_mut(&place).filter(|held| held.small == small) else {
            return;
        };
        let len = held.node.bytes().len();
        if small {
            self.small_bytes -= len;
        }
        if held.uses > 0 {
            held.uses -= 1;
            held.small = false;
            self.main.push_back(place);
        } else {
            if held.once {
                self.once_bytes -= len;
            }
            self.held.remove(&place);
            self.bytes -= len;
        }
    }

    fn forget(&mut self, place: Place) {
        let Some(held) = self.held.remove(&place) else {
            return;
        };
        let len = held.node.bytes().len();
        self.bytes -= len;
        if held.once {
            self.once_bytes -= len;
        }
        if held.small {
            self.small_bytes -= len;
        }
        if self.small.len() + self.main.len() > 2 * self.held.len() + STALE_MAX {
            let held = &self.held;
            self.small
                .retain(|place| held.get(place).is_some_and(|held| held.small));
            self.main
                .retain(|place| held.get(place).is_some_and(|held| !held.small));
        }
    }
}
