//! Preallocations of files that are written: each large file has its own, small ones share one a
//! core.
//!
//! The store hears of no close. A file that was given no block between two checkpoints is taken for
//! closed, and its preallocation is released. The same happens when the file is cut or freed, and,
//! by the allocator itself, when space is short. Preallocations are never on the device: a crash,
//! or the end of the store, releases them.
//!
//! *Locking.* `files` is a leaf: preallocations are dropped after it was released.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use holdfast_sync::PerCore;
use holdfast_types::Ino;
use parking_lot::Mutex;

use crate::error::Result;
use crate::space::{Extent, FileRequest, Preallocations, Reservation, Space};

/// Files up to this size (in blocks) have no preallocation of their own.
const SMALL: u64 = 16;

/// The preallocations of all files.
#[derive(Debug)]
pub(in crate::store) struct FilePreallocations {
    space: Arc<Space>,
    files: Mutex<HashMap<Ino, Entry, RandomState>>,
    /// For files without their own, one a core.
    small: PerCore<Arc<Preallocations>>,
    /// The number of checkpoints.
    age: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    pieces: Arc<Preallocations>,
    /// The age at which it was last used.
    asked: u64,
}

impl FilePreallocations {
    pub(in crate::store) fn new(space: &Arc<Space>) -> Self {
        Self {
            space: Arc::clone(space),
            files: Mutex::default(),
            small: PerCore::new(|| Preallocations::new(space)),
            age: AtomicU64::new(0),
        }
    }

    /// Allocates blocks for a file, perhaps fewer than requested: out of `reservation`, as far as
    /// it goes.
    ///
    /// # Errors
    /// Those of the space, if there is none.
    pub(in crate::store) fn place(
        &self,
        ino: Ino,
        request: &FileRequest,
        reservation: Option<&mut Reservation>,
    ) -> Result<Extent> {
        hop!();
        let reservation = reservation.filter(|reservation| reservation.blocks() > 0);
        Ok(self.of(ino, request).place(request, reservation)?)
    }

    fn of(&self, ino: Ino, request: &FileRequest) -> Arc<Preallocations> {
        // Relaxed: a stale age only keeps the preallocation for one more checkpoint.
        let asked = self.age.load(Ordering::Relaxed);
        let mut files = self.files.lock();
        if let Some(entry) = files.get_mut(&ino) {
            entry.asked = asked;
            return Arc::clone(&entry.pieces);
        }
        if request.size() <= SMALL || !request.preallocates() {
            return Arc::clone(self.small.mine());
        }
        let pieces = Preallocations::new(&self.space);
        let entry = Entry {
            pieces: Arc::clone(&pieces),
            asked,
        };
        files.insert(ino, entry);
        pieces
    }

    /// The preallocation of a file that has its own.
    pub(in crate::store) fn pieces(&self, ino: Ino) -> Option<Arc<Preallocations>> {
        let mut files = self.files.lock();
        let entry = files.get_mut(&ino)?;
        entry.asked = self.age.load(Ordering::Relaxed);
        Some(Arc::clone(&entry.pieces))
    }

    /// A file was cut at this block, or has other blocks from there on.
    pub(in crate::store) fn cut(&self, ino: Ino, block: u64) {
        let files = self.files.lock();
        let pieces = files.get(&ino).map(|entry| Arc::clone(&entry.pieces));
        drop(files);
        if let Some(pieces) = pieces {
            pieces.discard(block);
        }
    }

    /// A file was freed.
    pub(in crate::store) fn forget(&self, ino: Ino) {
        let entry = self.files.lock().remove(&ino);
        // Dropped after the lock.
        drop(entry);
    }

    /// A checkpoint was made: drops preallocations that were not used since the one before.
    pub(in crate::store) fn age(&self) {
        let now = self.age.fetch_add(1, Ordering::Relaxed);
        let mut files = self.files.lock();
        let idle: Vec<_> = files.extract_if(|_, entry| entry.asked < now).collect();
        drop(files);
        drop(idle);
    }
}
