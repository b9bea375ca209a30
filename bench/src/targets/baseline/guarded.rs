//! Reads that write something which all readers of a file share: a reader-writer lock, or counters
//! that keep the content from going away.

use super::Guard;
use crate::targets::memory::{MemorySession, MemoryTree};
use crate::targets::{Io, OpenHow, Tree};
use anyhow::Result;
use holdfast_core::OpenFile;
use holdfast_types::Errno;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The memory file system, and what guards the content of each file.
pub(crate) struct GuardedTree {
    memory: MemoryTree,
    guard: Guard,
    files: Mutex<HashMap<CString, Arc<Shared>>>,
}

impl GuardedTree {
    pub(crate) fn new(guard: Guard) -> Self {
        Self {
            memory: MemoryTree::new(),
            guard,
            files: Mutex::default(),
        }
    }
}

impl Tree for GuardedTree {
    type Session<'t> = GuardedSession<'t>;

    fn session(&self) -> GuardedSession<'_> {
        GuardedSession {
            memory: self.memory.session(),
            tree: self,
        }
    }

    fn close(self) -> Result<()> {
        self.memory.close()
    }
}

/// What all users of a file write, on lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Shared {
    lock: RwLock<()>,
    references: AtomicU64,
    under_way: AtomicU64,
}

impl Shared {
    #[inline]
    fn reading<R>(&self, guard: Guard, read: impl FnOnce() -> R) -> R {
        match guard {
            Guard::Lock => {
                let _held = self.lock.read().unwrap_or_else(PoisonError::into_inner);
                read()
            }
            Guard::OneCounter => counted(&self.references, read),
            Guard::TwoCounters => counted(&self.references, || counted(&self.under_way, read)),
        }
    }

    #[inline]
    fn writing<R>(&self, guard: Guard, write: impl FnOnce() -> R) -> R {
        match guard {
            Guard::Lock => {
                let _held = self.lock.write().unwrap_or_else(PoisonError::into_inner);
                write()
            }
            Guard::OneCounter | Guard::TwoCounters => self.reading(guard, write),
        }
    }
}

/// Counted up before and down after, as a use that keeps something from going away: nothing may
/// be read before the first, or after the second.
#[inline]
fn counted<R>(counter: &AtomicU64, action: impl FnOnce() -> R) -> R {
    counter.fetch_add(1, Ordering::Acquire);
    let result = action();
    counter.fetch_sub(1, Ordering::Release);
    result
}

/// An open file, and what is shared with others who have it open.
pub(crate) struct GuardedFile {
    file: OpenFile,
    shared: Arc<Shared>,
}

/// Calls on open files, guarded.
pub(crate) struct GuardedSession<'t> {
    memory: MemorySession<'t>,
    tree: &'t GuardedTree,
}

impl Io for GuardedSession<'_> {
    type File = GuardedFile;

    fn open_file(&mut self, path: &CStr, how: OpenHow) -> Result<GuardedFile, Errno> {
        let file = self.memory.open_file(path, how)?;
        let files = self.tree.files.lock();
        let mut files = files.unwrap_or_else(PoisonError::into_inner);
        let shared = Arc::clone(files.entry(path.to_owned()).or_default());
        Ok(GuardedFile { file, shared })
    }

    #[inline]
    fn read_at(
        &mut self,
        file: &GuardedFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Errno> {
        let read = || self.memory.read_at(&file.file, offset, buffer);
        file.shared.reading(self.tree.guard, read)
    }

    #[inline]
    fn write_at(&mut self, file: &GuardedFile, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        let write = || self.memory.write_at(&file.file, offset, data);
        file.shared.writing(self.tree.guard, write)
    }

    #[inline]
    fn append(&mut self, file: &GuardedFile, data: &[u8]) -> Result<usize, Errno> {
        let write = || self.memory.append(&file.file, data);
        file.shared.writing(self.tree.guard, write)
    }

    fn set_size(&mut self, file: &GuardedFile, size: u64) -> Result<(), Errno> {
        let write = || self.memory.set_size(&file.file, size);
        file.shared.writing(self.tree.guard, write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_guard_writes_what_it_says_and_leaves_it_as_it_was() {
        let counts = |shared: &Shared| {
            let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let locked = shared.lock.try_write().is_err();
            (locked, load(&shared.references), load(&shared.under_way))
        };
        for (guard, expected) in [
            (Guard::Lock, (true, 0, 0)),
            (Guard::OneCounter, (false, 1, 0)),
            (Guard::TwoCounters, (false, 1, 1)),
        ] {
            let shared = Shared::default();
            assert_eq!(shared.reading(guard, || counts(&shared)), expected);
            let alone = shared.writing(guard, || shared.lock.try_read().is_err());
            assert_eq!(alone, guard == Guard::Lock);
            assert_eq!(counts(&shared), (false, 0, 0));
        }
    }

    #[test]
    fn all_who_open_a_file_share_its_guard() {
        let tree = GuardedTree::new(Guard::OneCounter);
        let (mut one, mut other) = (tree.session(), tree.session());
        let made = one.open_file(c"/f", OpenHow::Make).expect("made");
        let again = other.open_file(c"/f", OpenHow::Read).expect("there");
        let second = other.open_file(c"/g", OpenHow::Make).expect("made");
        assert!(Arc::ptr_eq(&made.shared, &again.shared));
        assert!(!Arc::ptr_eq(&made.shared, &second.shared));
    }
}
