//! Open files by the numbers that the kernel knows them by.
//!
//! # Invariants
//! A number is never reused, so an invalid number finds nothing.
//!
//! # Locking
//! A shard is locked to find, add or remove an open file, not while it is used. Only
//! [`Handles::each`] calls other code with a shard locked.

use holdfast_core::{
    OpenFile,
    types::{Errno, Result},
};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

const SHARDS: usize = 64;

/// An open file and its locks.
pub(super) struct Handle {
    pub(super) file: OpenFile,
    /// Owners that set record locks through this open file. Usually none.
    pub(super) lock_owners: Mutex<Vec<u64>>,
    /// Does it hold a flock(2) lock?
    pub(super) flocked: AtomicBool,
}

impl Handle {
    /// May locks be held that end with the open file, not with a process?
    pub(super) fn holds_locks(&self) -> bool {
        self.flocked.load(Ordering::Relaxed) || !self.lock_owners.lock().is_empty()
    }
}

/// Aligned, so that no two shards share a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Shard(RwLock<HashMap<u64, Arc<Handle>>>);

/// The open files of a mount.
pub(super) struct Handles {
    shards: [Shard; SHARDS],
    /// The last number.
    last: AtomicU64,
}

impl Handles {
    pub(super) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard::default()),
            last: AtomicU64::new(0),
        }
    }

    fn shard(&self, fh: u64) -> &RwLock<HashMap<u64, Arc<Handle>>> {
        &self.shards[fh as usize % SHARDS].0
    }

    /// Adds an open file; returns its number, which is never 0.
    pub(super) fn insert(&self, file: OpenFile) -> u64 {
        let fh = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let handle = Arc::new(Handle {
            file,
            lock_owners: Mutex::default(),
            flocked: AtomicBool::new(false),
        });
        self.shard(fh).write().insert(fh, handle);
        fh
    }

    /// The open file of this number.
    pub(super) fn get(&self, fh: u64) -> Result<Arc<Handle>> {
        let found = self.shard(fh).read().get(&fh).cloned();
        found.ok_or(Errno::EBADF)
    }

    /// Removes the open file of this number.
    pub(super) fn remove(&self, fh: u64) -> Result<Arc<Handle>> {
        let removed = self.shard(fh).write().remove(&fh);
        removed.ok_or(Errno::EBADF)
    }

    /// Calls `visit` with every open file, with its shard locked.
    pub(super) fn each(&self, mut visit: impl FnMut(&Handle)) {
        for Shard(shard) in &self.shards {
            shard.read().values().for_each(|handle| visit(handle));
        }
    }

    /// Removes every open file: those that the kernel never closed.
    pub(super) fn drain(&self) {
        for Shard(shard) in &self.shards {
            let handles = std::mem::take(&mut *shard.write());
            drop(handles);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::{
        FileSystem, MemoryLimits, Options,
        types::{Caller, OpenFlags},
    };

    fn file() -> OpenFile {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        fs.open(&Caller::root(), &fs.root(), OpenFlags::DIRECTORY)
            .unwrap()
    }

    #[test]
    fn a_number_finds_its_file_until_it_is_removed_and_never_another() {
        let handles = Handles::new();
        let first = handles.insert(file());
        assert!(handles.get(first).is_ok());
        drop(handles.remove(first).unwrap());
        let second = handles.insert(file());
        assert_ne!(first, second);
        assert_eq!(handles.get(first).err(), Some(Errno::EBADF));
        assert_eq!(handles.remove(first).err(), Some(Errno::EBADF));
        assert!(handles.get(second).is_ok());
    }

    #[test]
    fn absurd_numbers_find_nothing() {
        let handles = Handles::new();
        for fh in [0, 1, u64::MAX, 1 << 32, u64::from(u32::MAX)] {
            assert_eq!(handles.get(fh).err(), Some(Errno::EBADF));
            assert_eq!(handles.remove(fh).err(), Some(Errno::EBADF));
        }
    }

    #[test]
    fn thousands_of_files_are_told_apart_and_drained() {
        let handles = Handles::new();
        let numbers: Vec<_> = (0..3000).map(|_| handles.insert(file())).collect();
        for pair in numbers.windows(2) {
            let (one, two) = (handles.get(pair[0]).unwrap(), handles.get(pair[1]).unwrap());
            assert_ne!(one.file.node(), two.file.node());
        }
        handles.drain();
        assert!(numbers.iter().all(|&fh| handles.get(fh).is_err()));
    }
}
