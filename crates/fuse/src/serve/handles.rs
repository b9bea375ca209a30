//! Open files by the numbers that the kernel knows them by.
//!
//! # Invariants
//! A number names one open file for ever: a slot that is used again has another generation, so
//! a number from a request that makes no sense finds nothing. Operations on different open files
//! touch different cache lines; opening and closing touch a free list that threads of one shard
//! share.
//!
//! # Locking
//! A slot is locked for reading while an operation uses its open file, and for writing when it
//! is filled and emptied. The kernel closes a file when no operation uses it any more, so nobody
//! waits. Free lists are locked for a push or a pop, never together with a slot.

use holdfast_core::{
    OpenFile,
    types::{Errno, Result},
};
use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard};
use std::{
    cell::Cell,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

/// Slots per chunk.
const CHUNK: usize = 1024;
/// Chunks, at most: four million open files.
const CHUNKS: usize = 4096;
/// Free lists.
const SHARDS: usize = 16;
/// New slots that a shard takes at a time.
const BATCH: usize = 64;

/// What a slot holds of an open file.
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

#[derive(Default)]
#[repr(align(128))]
struct Slot {
    /// Guards the generation and what the slot holds.
    state: RwLock<(u32, Option<Handle>)>,
}

#[derive(Default)]
#[repr(align(128))]
struct Shard {
    free: Mutex<Vec<u32>>,
}

#[derive(Default)]
#[repr(align(128))]
struct Handed(AtomicU32);

/// The open files of a mount.
pub(super) struct Handles {
    chunks: Box<[OnceLock<Box<[Slot]>>]>,
    /// Slots handed to shards so far. Apart from what every request reads.
    handed: Handed,
    shards: [Shard; SHARDS],
}

thread_local! {
    static SHARD: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The free list of this thread.
fn shard() -> usize {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    SHARD.get().unwrap_or_else(|| {
        let shard = NEXT.fetch_add(1, Ordering::Relaxed) as usize % SHARDS;
        SHARD.set(Some(shard));
        shard
    })
}

impl Handles {
    pub(super) fn new() -> Self {
        Self {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            handed: Handed::default(),
            shards: Default::default(),
        }
    }

    /// Keeps an open file; gives its number, which is never 0.
    pub(super) fn insert(&self, file: OpenFile) -> Result<u64> {
        let index = self.free_slot().ok_or(Errno::ENFILE)?;
        let slot = self.slot(index).ok_or(Errno::ENFILE)?;
        let mut state = slot.state.write();
        state.0 = state.0.wrapping_add(1).max(1);
        state.1 = Some(Handle {
            file,
            lock_owners: Mutex::default(),
            flocked: AtomicBool::new(false),
        });
        Ok(u64::from(state.0) << 32 | u64::from(index))
    }

    /// The open file of this number.
    pub(super) fn get(&self, fh: u64) -> Result<MappedRwLockReadGuard<'_, Handle>> {
        let (generation, index) = parts(fh);
        let slot = self.known(index).ok_or(Errno::EBADF)?;
        // Recursive: a copy within one file uses the slot twice, and must not wait behind a
        // writer in between.
        RwLockReadGuard::try_map(slot.state.read_recursive(), |(current, handle)| {
            handle.as_ref().filter(|_| *current == generation)
        })
        .map_err(|_| Errno::EBADF)
    }

    /// Takes the open file of this number out.
    pub(super) fn remove(&self, fh: u64) -> Result<Handle> {
        let (generation, index) = parts(fh);
        let slot = self.known(index).ok_or(Errno::EBADF)?;
        let handle = {
            let mut state = slot.state.write();
            if state.0 != generation {
                return Err(Errno::EBADF);
            }
            state.1.take().ok_or(Errno::EBADF)?
        };
        self.shards[shard()].free.lock().push(index);
        Ok(handle)
    }

    /// Shows every open file.
    pub(super) fn each(&self, mut look: impl FnMut(&Handle)) {
        for slot in self.chunks.iter().filter_map(OnceLock::get).flatten() {
            if let Some(handle) = &slot.state.read_recursive().1 {
                look(handle);
            }
        }
    }

    /// Takes out everything: what the kernel never closed.
    pub(super) fn drain(&self) {
        for slot in self.chunks.iter().filter_map(OnceLock::get).flatten() {
            let handle = slot.state.write().1.take();
            drop(handle);
        }
    }

    fn free_slot(&self) -> Option<u32> {
        let own = shard();
        if let Some(index) = self.shards[own].free.lock().pop() {
            return Some(index);
        }
        let batch = BATCH as u32;
        let limit = (CHUNK * CHUNKS) as u32;
        let handed = self
            .handed
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |handed| {
                (handed + batch <= limit).then_some(handed + batch)
            });
        if let Ok(first) = handed {
            self.shards[own]
                .free
                .lock()
                .extend((first + 1..first + batch).rev());
            return Some(first);
        }
        self.shards.iter().find_map(|other| other.free.lock().pop())
    }

    fn known(&self, index: u32) -> Option<&Slot> {
        let (chunk, within) = (index as usize / CHUNK, index as usize % CHUNK);
        self.chunks.get(chunk)?.get()?.get(within)
    }

    /// The slot, made if it is not there yet.
    fn slot(&self, index: u32) -> Option<&Slot> {
        let (chunk, within) = (index as usize / CHUNK, index as usize % CHUNK);
        self.chunks
            .get(chunk)?
            .get_or_init(|| (0..CHUNK).map(|_| Slot::default()).collect())
            .get(within)
    }
}

fn parts(fh: u64) -> (u32, u32) {
    ((fh >> 32) as u32, fh as u32)
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
        let first = handles.insert(file()).unwrap();
        assert!(handles.get(first).is_ok());
        drop(handles.remove(first).unwrap());
        let second = handles.insert(file()).unwrap();
        assert_eq!(first as u32, second as u32, "the slot is used again");
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
        let numbers: Vec<_> = (0..3000).map(|_| handles.insert(file()).unwrap()).collect();
        for pair in numbers.windows(2) {
            let (one, two) = (handles.get(pair[0]).unwrap(), handles.get(pair[1]).unwrap());
            assert_ne!(one.file.node(), two.file.node());
        }
        handles.drain();
        assert!(numbers.iter().all(|&fh| handles.get(fh).is_err()));
    }
}
