//! Blocks of objects: in memory, on disk, or from the object store.
//!
//! A block is 256 KiB of an object, or less where the object ends. Neighbours in a pack come along.
//! Where an object ends is not known, only that what is mapped lies within it.
//!
//! *Locking.* `state` is a leaf, and held for no request. A block that is on its way is in
//! `pending`: others that need it wait for `arrived`.

use super::disk::{Disk, Key};
use crate::objects::Objects;
use holdfast_core::interrupt::{self, is_interrupted};
use holdfast_types::{Errno, Result};
use lru::LruCache;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Bytes of a block.
pub(super) const BLOCK: u64 = 256 << 10;
/// Objects that are asked at once for one read.
const AT_ONCE: usize = 8;

/// Blocks, and how many bytes of each are needed.
pub(super) type Wants = BTreeMap<Key, u64>;
/// The beginnings of blocks.
pub(super) type Found = BTreeMap<Key, Arc<[u8]>>;

/// The cache of blocks.
pub(super) struct Blocks {
    objects: Arc<dyn Objects>,
    state: Mutex<State>,
    arrived: Condvar,
    pub(super) bytes: AtomicU64,
    /// Memory for blocks that are on their way.
    pub(super) fetching: AtomicU64,
    /// Bytes that it may keep.
    pub(super) limit: AtomicU64,
    disk: Option<Arc<Disk>>,
}

struct State {
    blocks: LruCache<Key, Arc<[u8]>>,
    pending: HashSet<Key>,
    /// The last blocks that could not be fetched.
    failed: Option<(Vec<Key>, Instant, Errno)>,
}

/// Blocks that a thread fetches. Others may fetch them when it ends.
struct Pending<'b>(&'b Blocks, &'b Wants);

impl<'b> Pending<'b> {
    fn new(blocks: &'b Blocks, wants: &'b Wants) -> Self {
        let this = Self(blocks, wants);
        blocks.fetching.fetch_add(this.memory(), Relaxed);
        this
    }

    /// Answers of the object store, and blocks that are copied from them.
    fn memory(&self) -> u64 {
        2 * self.1.len() as u64 * BLOCK
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.fetching.fetch_sub(self.memory(), Relaxed);
        let mut state = self.0.state.lock();
        for key in self.1.keys() {
            state.pending.remove(key);
        }
        drop(state);
        self.0.arrived.notify_all();
    }
}

impl Blocks {
    pub(super) fn new(objects: Arc<dyn Objects>, disk: Option<Arc<Disk>>, limit: u64) -> Self {
        Self {
            objects,
            state: Mutex::new(State {
                blocks: LruCache::unbounded(),
                pending: HashSet::new(),
                failed: None,
            }),
            arrived: Condvar::new(),
            bytes: AtomicU64::new(0),
            fetching: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
            disk,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().blocks.len()
    }

    /// Adds the blocks of a part of an object to what is wanted. `end` is the end of what is known
    /// to exist.
    pub(super) fn want(wants: &mut Wants, object: u64, part: Range<u64>, end: u64) {
        for block in part.start / BLOCK..part.end.div_ceil(BLOCK) {
            let len = end.saturating_sub(block * BLOCK).min(BLOCK);
            let wanted = wants.entry((object, block)).or_default();
            *wanted = len.max(*wanted);
        }
    }

    /// Brings blocks.
    ///
    /// # Errors
    /// `ENOENT`: an object does not exist. `EIO`.
    pub(super) fn load(&self, wants: &Wants) -> Result<Found> {
        let mut found = Found::new();
        let begun = Instant::now();
        loop {
            let (mine, waits) = self.take_on(wants, &mut found, begun)?;
            if !mine.is_empty() {
                let pending = Pending::new(self, &mine);
                let loaded = self.fetch(&mine).inspect_err(|&error| {
                    // Those that wait fail as well. A caller that was ended is no failure.
                    if error != Errno::EINTR {
                        let keys = mine.keys().copied().collect();
                        self.state.lock().failed = Some((keys, Instant::now(), error));
                    }
                })?;
                self.keep(&loaded);
                drop(pending);
                found.extend(loaded);
            } else if waits {
                let mut state = self.state.lock();
                let is_pending = |key: &Key| state.pending.contains(key);
                if wants
                    .keys()
                    .any(|key| !found.contains_key(key) && is_pending(key))
                {
                    let waited = self.arrived.wait_for(&mut state, interrupt::POLL);
                    if waited.timed_out() && is_interrupted() {
                        return Err(Errno::EINTR);
                    }
                }
            } else {
                return Ok(found);
            }
        }
    }

    /// Adds what is in memory to `found`, and takes on what nobody fetches yet. The second is
    /// whether others fetch some.
    ///
    /// # Errors
    /// That of another thread, which failed to fetch some since `begun`.
    fn take_on(&self, wants: &Wants, found: &mut Found, begun: Instant) -> Result<(Wants, bool)> {
        let mut state = self.state.lock();
        if let Some((keys, at, error)) = &state.failed
            && *at >= begun
            && (keys.iter()).any(|key| wants.contains_key(key) && !found.contains_key(key))
        {
            return Err(*error);
        }
        let (mut mine, mut waits) = (Wants::new(), false);
        for (&key, &len) in wants {
            if found.contains_key(&key) {
                continue;
            }
            let block = state.blocks.get(&key);
            if let Some(block) = block.filter(|block| block.len() as u64 >= len) {
                found.insert(key, Arc::clone(block));
            } else if state.pending.insert(key) {
                mine.insert(key, len);
            } else {
                waits = true;
            }
        }
        Ok((mine, waits))
    }

    /// Keeps blocks that were loaded.
    fn keep(&self, loaded: &Found) {
        let mut gone = Vec::new();
        let mut state = self.state.lock();
        for (key, block) in loaded {
            self.bytes.fetch_add(block.len() as u64, Relaxed);
            gone.extend(state.blocks.push(*key, Arc::clone(block)));
        }
        let limit = self.limit.load(Relaxed);
        let mut freed: u64 = gone.iter().map(|(_, block)| block.len() as u64).sum();
        while self.bytes.load(Relaxed).saturating_sub(freed) > limit {
            let Some(last) = state.blocks.pop_lru() else {
                break;
            };
            freed += last.1.len() as u64;
            gone.push(last);
        }
        self.bytes.fetch_sub(freed, Relaxed);
        drop(state);
        // Memory is freed with no lock held.
        drop(gone);
    }

    /// Forgets at most `objects` blocks until no more than `limit` bytes are kept.
    pub(super) fn shrink(&self, limit: u64, objects: usize) -> usize {
        let mut gone = Vec::new();
        let mut state = self.state.lock();
        while gone.len() < objects && self.bytes.load(Relaxed) > limit {
            let Some(last) = state.blocks.pop_lru() else {
                break;
            };
            self.bytes.fetch_sub(last.1.len() as u64, Relaxed);
            gone.push(last);
        }
        drop(state);
        gone.len()
    }

    /// Fetches blocks from disk, and the others from the object store: one request an object, and
    /// several objects at once.
    fn fetch(&self, wants: &Wants) -> Result<Found> {
        let mut found = Found::new();
        if let Some(disk) = &self.disk {
            let on_disk = |(key, len): (&Key, &u64)| Some((*key, disk.get(*key, *len)?));
            found.extend(wants.iter().filter_map(on_disk));
        }
        let mut objects = BTreeMap::<u64, Vec<(Key, u64)>>::new();
        for (&key, &len) in wants {
            if !found.contains_key(&key) {
                objects.entry(key.0).or_default().push((key, len));
            }
        }
        let objects: Vec<_> = objects.into_iter().collect();
        for some in objects.chunks(AT_ONCE) {
            let loaded: Vec<Result<Found>> = match some {
                [(object, blocks)] => vec![self.fetch_object(*object, blocks)],
                some => std::thread::scope(|scope| {
                    let fetch = |(object, blocks): &'_ (u64, Vec<(Key, u64)>)| {
                        self.fetch_object(*object, blocks)
                    };
                    let threads: Vec<_> = some
                        .iter()
                        .map(|one| (one, interrupt::current()))
                        .map(|(one, caller)| {
                            scope.spawn(move || interrupt::during(caller, || fetch(one)))
                        })
                        .collect();
                    let joined = threads
                        .into_iter()
                        .map(|it| it.join().unwrap_or(Err(Errno::EIO)));
                    joined.collect()
                }),
            };
            for one in loaded {
                let one = one?;
                if let Some(disk) = &self.disk {
                    one.iter().for_each(|(key, block)| disk.put(*key, block));
                }
                found.extend(one);
            }
        }
        Ok(found)
    }

    /// Fetches blocks of an object, which are in order.
    fn fetch_object(&self, object: u64, blocks: &[(Key, u64)]) -> Result<Found> {
        let starts = blocks.iter().map(|((_, block), _)| block * BLOCK);
        let ranges: Vec<_> = starts.map(|at| at..at.saturating_add(BLOCK)).collect();
        let read = self.objects.get(object, &ranges)?;
        let whole = (read.iter().zip(blocks)).all(|(bytes, (_, len))| bytes.len() as u64 >= *len);
        if !whole || read.len() != blocks.len() {
            tracing::warn!("object {object} is shorter than its map");
            return Err(Errno::EIO);
        }
        Ok(blocks.iter().map(|(key, _)| *key).zip(read).collect())
    }
}
