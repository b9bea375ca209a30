//! What is set aside for files that are written: each large one's own pieces, and those that small
//! ones share by core.
//!
//! The store hears of no close. A file that was given no place between two checkpoints is taken for
//! closed, and what was set aside for it goes back; so it does when the file is cut or freed, and,
//! by the space itself, as soon as room is short. Nothing of it is ever on the device: a crash, or
//! the end of the store, gives it back by itself.
//!
//! *Locking.* A shard is a leaf: what a file had is given up when it is free.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use holdfast_sync::{Padded, PerCore};
use holdfast_types::Ino;
use parking_lot::Mutex;

use crate::Result;
use crate::space::{Extent, FileRequest, Preallocations, Reservation, Space};

const SHARDS: usize = 16;
/// Neighbours by number mostly are of one thread: they share a shard.
const RUN: u64 = 64;
/// Files up to this size (in blocks) have none of their own.
const SMALL: u64 = 16;

/// The pieces of all files.
#[derive(Debug)]
pub(in crate::store) struct Ahead {
    space: Arc<Space>,
    shards: Box<[Padded<Shard>]>,
    /// Of files that have none of their own: each core's.
    small: PerCore<Arc<Preallocations>>,
    /// How many checkpoints there were.
    age: AtomicU64,
}

/// Some files, and how many they are.
#[derive(Debug, Default)]
struct Shard {
    files: Mutex<Files>,
    /// Changed with the lock held. Most files never have pieces: who looks here first takes a lock,
    /// and its line from others, only if some has.
    len: AtomicUsize,
}

type Files = HashMap<Ino, Entry, RandomState>;

#[derive(Debug)]
struct Entry {
    pieces: Arc<Preallocations>,
    /// The age at which it was asked last.
    asked: u64,
}

impl Ahead {
    /// Of nobody yet.
    pub(in crate::store) fn new(space: &Arc<Space>) -> Self {
        Self {
            space: Arc::clone(space),
            shards: (0..SHARDS).map(|_| Padded::default()).collect(),
            small: PerCore::new(|| Preallocations::new(space)),
            age: AtomicU64::new(0),
        }
    }

    /// Places blocks of a file, maybe fewer than asked for: out of the promise, as far as it goes.
    ///
    /// # Errors
    /// Those of the space, if there is none.
    pub(in crate::store) fn place(
        &self,
        ino: Ino,
        request: &FileRequest,
        promise: Option<&mut Reservation>,
    ) -> Result<Extent> {
        let promise = promise.filter(|promise| promise.blocks() > 0);
        Ok(self.of(ino, request).place(request, promise)?)
    }

    fn of(&self, ino: Ino, request: &FileRequest) -> Arc<Preallocations> {
        // Relaxed: who reads an older one keeps the pieces for one more checkpoint.
        let asked = self.age.load(Ordering::Relaxed);
        let shard = self.shard(ino);
        let mut files = shard.files.lock();
        if let Some(entry) = files.get_mut(&ino) {
            entry.asked = asked;
            return Arc::clone(&entry.pieces);
        }
        if request.size() <= SMALL || !request.sets_aside() {
            return Arc::clone(self.small.mine());
        }
        let pieces = Preallocations::new(&self.space);
        let entry = Entry {
            pieces: Arc::clone(&pieces),
            asked,
        };
        files.insert(ino, entry);
        shard.len.store(files.len(), Ordering::Release);
        pieces
    }

    /// The pieces of a file that has some of its own.
    pub(in crate::store) fn pieces(&self, ino: Ino) -> Option<Arc<Preallocations>> {
        let mut files = self.occupied(ino)?.files.lock();
        let entry = files.get_mut(&ino)?;
        entry.asked = self.age.load(Ordering::Relaxed);
        Some(Arc::clone(&entry.pieces))
    }

    /// A file has none of these blocks any more, nor any behind them, or has others there.
    pub(in crate::store) fn cut(&self, ino: Ino, block: u64) {
        let Some(shard) = self.occupied(ino) else {
            return;
        };
        let pieces = shard
            .files
            .lock()
            .get(&ino)
            .map(|entry| Arc::clone(&entry.pieces));
        if let Some(pieces) = pieces {
            pieces.discard(block);
        }
    }

    /// A file is no more.
    pub(in crate::store) fn forget(&self, ino: Ino) {
        let Some(shard) = self.occupied(ino) else {
            return;
        };
        let entry = {
            let mut files = shard.files.lock();
            let entry = files.remove(&ino);
            shard.len.store(files.len(), Ordering::Release);
            entry
        };
        // Given up when the lock is free.
        drop(entry);
    }

    /// A checkpoint was made: files that asked for nothing since the one before are done.
    pub(in crate::store) fn age(&self) {
        let now = self.age.fetch_add(1, Ordering::Relaxed);
        for shard in &self.shards {
            let idle: Vec<Entry> = {
                let mut files = shard.files.lock();
                let idle = files.extract_if(|_, entry| entry.asked < now);
                let idle = idle.map(|(_, entry)| entry).collect();
                shard.len.store(files.len(), Ordering::Release);
                idle
            };
            drop(idle);
        }
    }

    fn shard(&self, ino: Ino) -> &Shard {
        &self.shards[(ino.0 / RUN) as usize % SHARDS]
    }

    /// The shard in which a file's pieces are, unless nobody's are there.
    fn occupied(&self, ino: Ino) -> Option<&Shard> {
        let shard = self.shard(ino);
        // Acquire: a file's own pieces were counted before what is done to it now.
        (shard.len.load(Ordering::Acquire) > 0).then_some(shard)
    }
}
