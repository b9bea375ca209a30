//! What changed since a checkpoint, in memory, over the trees.
//!
//! *Locking.* Each object lies in one shard, by its number; a shard's lock is a leaf, except that a
//! device may be read under it. Who changes several objects as one is excluded by the store's gate.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use holdfast_core::store::InodeRecord;
use holdfast_sync::Padded;
use holdfast_types::Ino;
use parking_lot::{Mutex, MutexGuard};

use super::content::Content;
use super::growth::Growth;
use super::names::Names;

const SHARDS: usize = 64;
/// Numbers that follow each other are in one shard: the core deals them to one thread.
const RUN: u64 = 64;

/// Objects that changed, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// In boxes: a growing table moves less, and its empty places are small.
    by_number: HashMap<u64, Box<Object>, RandomState>,
    /// Those that the layers below do not have, in order: a bit for each number of a run.
    fresh: BTreeMap<u64, u64>,
}

impl Objects {
    /// An object that changed.
    pub(super) fn get(&self, ino: Ino) -> Option<&Object> {
        self.by_number.get(&ino.0).map(|object| &**object)
    }

    /// An object that changed, to change it again.
    pub(super) fn get_mut(&mut self, ino: Ino) -> Option<&mut Object> {
        self.by_number.get_mut(&ino.0).map(|object| &mut **object)
    }

    /// An object, changed from now on.
    pub(super) fn changed(&mut self, ino: Ino) -> &mut Object {
        self.by_number.entry(ino.0).or_default()
    }

    /// A new object.
    pub(super) fn create(&mut self, ino: Ino) -> &mut Object {
        *self.fresh.entry(ino.0 / RUN).or_default() |= 1 << (ino.0 % RUN);
        let object = self.changed(ino);
        object.fresh = true;
        object
    }

    /// Forgets an object that the layers below never had.
    pub(super) fn forget(&mut self, ino: Ino) {
        if let Entry::Occupied(mut run) = self.fresh.entry(ino.0 / RUN) {
            *run.get_mut() &= !(1 << (ino.0 % RUN));
            if *run.get() == 0 {
                run.remove();
            }
        }
        self.by_number.remove(&ino.0);
    }
}

/// What changed of one inode and all that belongs to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    /// Its attributes, or that it is no more; `None`: as below.
    pub(super) record: Option<Option<InodeRecord>>,
    /// The target of a new symbolic link.
    pub(super) target: Option<Box<[u8]>>,
    /// Extended attributes that changed; `None`: gone.
    pub(super) xattrs: BTreeMap<Box<[u8]>, Option<Box<[u8]>>>,
    /// A file's bytes, if they changed.
    pub(super) content: Option<Box<Content>>,
    /// A directory's names, as far as they changed.
    pub(super) names: Option<Box<Names>>,
    /// Nothing below has this number: what is here is all.
    pub(super) fresh: bool,
}

impl Object {
    /// The names, to be changed.
    pub(super) fn names_mut(&mut self) -> &mut Names {
        self.names.get_or_insert_default()
    }

    /// Is it no more?
    pub(super) fn is_freed(&self) -> bool {
        matches!(self.record, Some(None))
    }
}

/// All changes.
#[derive(Debug)]
pub(super) struct Overlay {
    shards: Box<[Padded<Mutex<Objects>>]>,
    /// Pages that wait to be written.
    dirty: AtomicUsize,
    /// The files whose they are, and perhaps others.
    dirty_files: Mutex<Vec<Ino>>,
    /// How many keys of the trees changed at most, and bytes that they gain.
    keys: AtomicU64,
    bytes: AtomicU64,
}

impl Overlay {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Padded(Mutex::default())).collect(),
            dirty: AtomicUsize::new(0),
            dirty_files: Mutex::default(),
            keys: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The shard in which a number's object is, if it changed.
    pub(super) fn shard(&self, ino: Ino) -> MutexGuard<'_, Objects> {
        self.shards[(ino.0 / RUN) as usize % SHARDS].lock()
    }

    /// All shards, one after the other.
    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Objects>> {
        self.shards.iter().map(|shard| shard.lock())
    }

    /// Looks at what changed of an object.
    pub(super) fn with<R>(&self, ino: Ino, look: impl FnOnce(&Object) -> R) -> Option<R> {
        self.shard(ino).get(ino).map(look)
    }

    /// Did nothing change?
    pub(super) fn is_empty(&self) -> bool {
        self.shards().all(|shard| shard.by_number.is_empty())
    }

    /// Pages that wait to be written.
    pub(super) fn dirty(&self) -> usize {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Counts what a change of a file did to them.
    pub(super) fn count_dirty(&self, ino: Ino, before: usize, after: usize) {
        if before == 0 && after > 0 {
            self.dirty_files.lock().push(ino);
        }
        // Relaxed: an estimate for throttling.
        if after >= before {
            self.dirty.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.dirty.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    /// Counts what a batch means for the trees.
    pub(super) fn count(&self, growth: Growth) {
        // Relaxed: estimates, and who needs them exactly has stopped everybody else.
        self.keys.fetch_add(growth.keys, Ordering::Relaxed);
        self.bytes.fetch_add(growth.bytes, Ordering::Relaxed);
    }

    /// What all batches mean for the trees.
    pub(super) fn growth(&self) -> Growth {
        Growth {
            keys: self.keys.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// The files that have pages to be written, and perhaps others; from now on none.
    pub(super) fn take_dirty_files(&self) -> Vec<Ino> {
        let mut files = std::mem::take(&mut *self.dirty_files.lock());
        files.sort_unstable();
        files.dedup();
        files
    }

    /// The numbers of all objects that changed, ascending.
    pub(super) fn numbers(&self) -> Vec<Ino> {
        let mut numbers: Vec<Ino> = Vec::new();
        for shard in self.shards() {
            numbers.extend(shard.by_number.keys().map(|ino| Ino(*ino)));
        }
        numbers.sort_unstable();
        numbers
    }

    /// Numbers of new objects behind this one, ascending: at most `max`.
    pub(super) fn fresh_after(&self, after: Ino, max: usize) -> Vec<Ino> {
        let mut found: Vec<Ino> = Vec::new();
        for shard in self.shards() {
            let runs = shard.fresh.range(after.0 / RUN..);
            let numbers = runs.flat_map(|(run, bits)| {
                let there = (0..RUN).filter(move |bit| bits >> bit & 1 != 0);
                there.map(move |bit| Ino(run * RUN + bit))
            });
            found.extend(numbers.filter(|ino| *ino > after).take(max));
        }
        found.sort_unstable();
        found.truncate(max);
        found
    }
}
