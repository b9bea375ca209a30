//! Nodes in memory: read once, verified once, kept while they are used.
//!
//! A bounded cache in shards. New nodes enter a small queue. A node used again before it reaches
//! the end moves to the main queue, where each further use earns another round (S3-FIFO without its
//! ghosts: Yang et al., SOSP 2023). So a scan of everything passes through the small queue and
//! leaves the others alone.
//!
//! A node read for a scan of all records (`Use::Once`) is dropped when the scan has passed it,
//! unless another reader asked for it meanwhile. Until then it is not counted: it takes no memory
//! from other caches.
//!
//! *Invariants.* Nodes are found by block number and generation. A reused block has another
//! generation, so cached nodes never become stale. Cached nodes have been verified. The bytes stay
//! within the bound, except for one node a shard; after the bound was lowered, as other nodes
//! arrive or by `shrink`.
//!
//! *Locking.* One lock a shard, a leaf: no read and no wait under it.

use super::error::{Defect, Error, Result};
use super::node::{BLOCK, Node, child};
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

/// The device that nodes are read from.
pub trait NodeSource: Send + Sync {
    /// The number of blocks: a pointer beyond them is damaged.
    fn blocks(&self) -> u64;

    /// The identity of the volume: nodes of another volume are refused.
    fn volume(&self) -> u32;

    /// Reads the blocks from `block` on into `bytes`; its length is a multiple of 4096.
    ///
    /// # Errors
    /// What the device says.
    fn read(&self, block: u64, bytes: &mut [u8]) -> Result<(), Errno>;

    /// Reads several nodes, in one batch if possible.
    ///
    /// # Errors
    /// What the device returns for any of them.
    fn read_batch(&self, reads: &mut [(u64, Box<[u8]>)]) -> Result<(), Errno> {
        reads
            .iter_mut()
            .try_for_each(|(block, bytes)| self.read(*block, bytes))
    }
}

const SHARDS: usize = 16;
/// The maximum of `Held::uses`.
const USES_MAX: u8 = 3;
/// The share of a shard that the small queue may take: one in this many bytes.
const SMALL_PART: usize = 10;
/// The share of all bytes that is read ahead at once: less than the small queue takes, so that the
/// nodes are still there when they are used.
const READAHEAD_PART: usize = 16;
/// The most entries of dropped nodes in the queues of a shard.
const STALE_MAX: usize = 64;

/// Hits and misses of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Nodes found in memory.
    pub hits: u64,
    /// Nodes read.
    pub misses: u64,
    /// Nodes in memory now.
    pub nodes: usize,
    /// Their bytes.
    pub bytes: usize,
    /// The part of them that was read only for a scan.
    pub once: usize,
}

/// The expected uses of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It may be used again.
    Reused,
    /// A scan that does not return to it.
    Once,
}

/// A [`NodeSource`] and its nodes in memory.
#[derive(Debug)]
pub struct NodeCache<S> {
    source: S,
    shards: Box<[Mutex<Shard>]>,
    most: usize,
    /// Relaxed: only a bound.
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

    /// Sets the bound on the bytes of nodes, at most the bound it was made with. The surplus is
    /// dropped as other nodes arrive.
    pub fn limit(&self, bytes: usize) {
        let shard_bytes = bytes.min(self.most) / SHARDS;
        self.shard_bytes.store(shard_bytes, Relaxed);
    }

    /// The bound on the bytes of nodes, except for one node a shard.
    pub fn most(&self) -> usize {
        self.shard_bytes.load(Relaxed) * SHARDS
    }

    /// The device that nodes are read from.
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

    /// Makes so many eviction steps, while more than the [limit](Self::limit) is kept. Returns how
    /// many nodes were dropped and how many steps are left.
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

    /// Drops a node that was replaced; merely saves its memory.
    pub fn forget(&self, pointer: Pointer) {
        self.shard(pointer)
            .lock()
            .forget((pointer.block, pointer.generation));
    }

    /// Drops a node that a scan has passed.
    pub(super) fn pass(&self, node: &Node) {
        let pointer = node.pointer();
        let place = (pointer.block, pointer.generation);
        let mut shard = self.shard(pointer).lock();
        if shard.held.get(&place).is_some_and(|held| held.once) {
            shard.forget(place);
        }
    }

    /// Drops every node.
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
        let mixed = (pointer.block ^ pointer.generation).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.shards[(mixed >> 60) as usize % SHARDS]
    }

    /// The node at `pointer`, which must have `level` in a tree of `R`.
    pub(super) fn load<R: Record>(&self, pointer: Pointer, level: u8) -> Result<Node> {
        self.load_for::<R>(Use::Reused, pointer, level)
    }

    /// Like [`load`](Self::load), for one use or more.
    pub(super) fn load_for<R: Record>(
        &self,
        usage: Use,
        pointer: Pointer,
        level: u8,
    ) -> Result<Node> {
        hop!();
        match self.find::<R>(usage, pointer, level) {
            Some(found) => found,
            None => self.read::<R>(usage, pointer, level),
        }
    }

    /// Child `index` of `parent`, at `level`. If it is not in memory, it is read with the children
    /// behind it that [`ReadaheadStates`] expects to be used next.
    pub(super) fn load_child<R: Record>(
        &self,
        usage: Use,
        parent: &Node,
        index: usize,
        level: u8,
    ) -> Result<Node> {
        hop!();
        let (_, pointer) = child::<R>(parent, index)?;
        if let Some(found) = self.find::<R>(usage, pointer, level) {
            return found;
        }
        let bytes = self.shard_bytes.load(Relaxed) * SHARDS / READAHEAD_PART;
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

    /// A node in memory.
    fn find<R: Record>(&self, usage: Use, pointer: Pointer, level: u8) -> Option<Result<Node>> {
        let mut shard = self.shard(pointer).lock();
        let node = shard.find((pointer.block, pointer.generation), usage)?;
        drop(shard);
        // Of another tree or level: verified, but not for this place.
        let fits = node.belongs(R::KIND, level) && node.pointer() == pointer;
        Some(match fits {
            true => Ok(node),
            false => self.load_anew::<R>(pointer, level),
        })
    }

    /// Reads a node that is not in memory, and keeps it.
    fn read<R: Record>(&self, usage: Use, pointer: Pointer, level: u8) -> Result<Node> {
        hop!();
        let node = self.load_anew::<R>(pointer, level)?;
        self.keep(node.clone(), usage);
        Ok(node)
    }

    /// Reads and verifies a node, even if it is in memory.
    pub(super) fn load_anew<R: Record>(&self, pointer: Pointer, level: u8) -> Result<Node> {
        hop!();
        self.check_place(pointer)?;
        let mut bytes = zeroed(pointer);
        let block = pointer.block;
        let read = self.source.read(block, &mut bytes);
        read.map_err(|errno| Error::Device { block, errno })?;
        self.verify::<R>(bytes.into(), pointer, level)
    }

    /// Reads the `pointers` that are not in memory, as one batch. A hint: a failed read fails again
    /// when its result is needed.
    pub(super) fn prefetch<R: Record>(&self, usage: Use, pointers: &[Pointer], level: u8) {
        let is_missing = |pointer: &&Pointer| {
            let held = self
                .shard(**pointer)
                .lock()
                .holds((pointer.block, pointer.generation));
            !held && self.check_place(**pointer).is_ok()
        };
        let missing: Vec<Pointer> = pointers.iter().filter(is_missing).copied().collect();
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
        if usage == Use::Reused {
            match held.once {
                // The first use that counts.
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
        let Pointer {
            block, generation, ..
        } = node.pointer();
        let len = node.bytes().len();
        if self.holds((block, generation)) {
            return;
        }
        while self.bytes > 0 && self.bytes + len > limit {
            self.evict(limit);
        }
        self.held.insert(
            (block, generation),
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
        self.small.push_back((block, generation));
        self.small_bytes += len;
        self.bytes += len;
    }

    /// Makes one eviction step: drops a node, or gives it another round.
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
        // A dropped node has left its entry in the queue.
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
