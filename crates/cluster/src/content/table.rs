//! The files that are known, the least recently used of which are forgotten.

use super::file::File;
use holdfast_types::Ino;
use lru::LruCache;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Files by number.
pub(super) struct Table {
    /// Above the states of files: those are only tried for under this lock.
    files: Mutex<LruCache<Ino, Arc<File>>>,
    /// Bytes of entries and of content that the database has.
    pub(super) clean: AtomicU64,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            files: Mutex::new(LruCache::unbounded()),
            clean: AtomicU64::new(0),
        }
    }

    pub(super) fn get(&self, ino: Ino) -> Option<Arc<File>> {
        self.files.lock().get(&ino).cloned()
    }

    pub(super) fn get_or_new(&self, ino: Ino) -> Arc<File> {
        let mut files = self.files.lock();
        Arc::clone(files.get_or_insert(ino, || File::new(ino)))
    }

    pub(super) fn len(&self) -> usize {
        self.files.lock().len()
    }

    /// Forgets a file if it is idle.
    pub(super) fn forget(&self, ino: Ino) {
        let mut files = self.files.lock();
        if files.peek(&ino).is_some_and(|file| self.gives_up(file)) {
            files.pop(&ino);
        }
    }

    /// Is the file idle? Then its bytes are not counted any more: the caller removes it.
    fn gives_up(&self, file: &Arc<File>) -> bool {
        // A clone is made under the lock of the table only, or from another clone.
        if Arc::strong_count(file) > 1 {
            return false;
        }
        let Some(mut state) = file.state.try_lock() else {
            return false;
        };
        if state.is_idle() {
            let (_, clean) = std::mem::take(&mut state.counted);
            self.clean.fetch_sub(clean, Relaxed);
            return true;
        }
        false
    }

    /// Looks at most at `objects` files, the least recently used first, and forgets the idle ones
    /// until no more than `limit` bytes are counted. Returns how many it forgot.
    pub(super) fn shrink(&self, limit: u64, objects: usize) -> usize {
        let mut files = self.files.lock();
        let mut gone = 0;
        for _ in 0..objects.min(files.len()) {
            if self.clean.load(Relaxed) <= limit {
                break;
            }
            let Some((ino, file)) = files.pop_lru() else {
                break;
            };
            if self.gives_up(&file) {
                gone += 1;
            } else {
                files.put(ino, file);
            }
        }
        gone
    }
}
