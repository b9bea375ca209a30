//! The list of files with changes that wait for the database.

use super::file::File;
use holdfast_types::Ino;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Files that are flushed at once.
pub(super) const FILES: usize = 64;

/// Files that wait.
pub(super) struct Dirty {
    /// A leaf.
    files: Mutex<BTreeMap<Ino, Arc<File>>>,
    /// Bytes that wait.
    pub(super) bytes: AtomicU64,
    /// Flushes that have succeeded.
    pub(super) successes: AtomicU64,
    pub(super) signal: Arc<Signal>,
}

/// What threads tell each other.
#[derive(Default)]
pub(super) struct Signal {
    pub(super) state: Mutex<Signals>,
    /// For the writeback thread: a signal was set.
    pub(super) wake: Condvar,
    /// For writers: a flush ended.
    pub(super) room: Condvar,
}

#[derive(Default)]
pub(super) struct Signals {
    pub(super) runs: bool,
    /// There are files where there were none, or one fills a pack.
    pub(super) more: bool,
    /// Too much waits.
    pub(super) urgent: bool,
    pub(super) stopped: bool,
}

impl Dirty {
    pub(super) fn new() -> Self {
        Self {
            files: Mutex::default(),
            bytes: AtomicU64::new(0),
            successes: AtomicU64::new(0),
            signal: Arc::default(),
        }
    }

    pub(super) fn files(&self) -> Vec<Arc<File>> {
        self.files.lock().values().cloned().collect()
    }

    /// A file has changes that wait, or has none any more.
    pub(super) fn list(&self, file: &Arc<File>, is_dirty: bool) {
        let mut files = self.files.lock();
        if !is_dirty {
            files.remove(&file.ino);
            return;
        }
        let was_empty = files.is_empty();
        files.entry(file.ino).or_insert_with(|| Arc::clone(file));
        drop(files);
        if was_empty {
            self.look();
        }
    }

    /// Has the writeback thread look for files that are due.
    pub(super) fn look(&self) {
        self.signal.state.lock().more = true;
        self.signal.wake.notify_one();
    }

    pub(super) fn hurry(&self) {
        let mut state = self.signal.state.lock();
        if !state.urgent {
            state.urgent = true;
            self.signal.wake.notify_one();
        }
    }

    /// A flush has ended.
    pub(super) fn arrived(&self, succeeded: bool) {
        if succeeded {
            self.successes.fetch_add(1, Relaxed);
        }
        // Writers check the bytes under this lock.
        drop(self.signal.state.lock());
        self.signal.room.notify_all();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.lock().is_empty()
    }

    pub(super) fn stop(&self) {
        self.signal.state.lock().stopped = true;
        self.signal.wake.notify_all();
    }
}
