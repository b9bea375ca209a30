//! The watched directories.

use holdfast_core::types::Ino;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Bytes of a directory in both tables.
const COST: u64 = 96;
/// Dropped inodes, at least, before watches of unknown directories are removed.
const SWEEP: usize = 1024;
/// The kernel's limit of watches if it cannot be read; half of the limit is used.
const WATCHES: usize = 8192;

struct Watch {
    id: i32,
    since: Instant,
}

pub(super) struct Watches {
    most: usize,
    by_dir: HashMap<Ino, Watch>,
    by_id: HashMap<i32, Ino>,
    /// Inodes dropped since the last sweep.
    let_go: AtomicUsize,
}

/// A limit of the kernel; `None`: it cannot be read.
pub(super) fn limit(name: &str) -> Option<usize> {
    let limit = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}"));
    limit.ok()?.trim().parse().ok()
}

impl Watches {
    pub(super) fn new() -> Self {
        Self::at_most(limit("max_user_watches").unwrap_or(WATCHES) / 2)
    }

    fn at_most(most: usize) -> Self {
        Self {
            most,
            by_dir: HashMap::new(),
            by_id: HashMap::new(),
            let_go: AtomicUsize::new(0),
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.by_dir.len() < self.most
    }

    /// Adds a watch.
    pub(super) fn note(&mut self, ino: Ino, id: i32) {
        // The directory may have been watched by another inode number.
        if let Some(was) = self.by_id.insert(id, ino)
            && was != ino
        {
            self.by_dir.remove(&was);
        }
        let watch = Watch {
            id,
            since: Instant::now(),
        };
        if let Some(was) = self.by_dir.insert(ino, watch)
            && was.id != id
        {
            self.by_id.remove(&was.id);
        }
    }

    pub(super) fn since(&self, dir: Ino) -> Option<Instant> {
        self.by_dir.get(&dir).map(|watch| watch.since)
    }

    pub(super) fn dir(&self, id: i32) -> Option<Ino> {
        self.by_id.get(&id).copied()
    }

    /// The kernel has removed a watch.
    pub(super) fn ended(&mut self, id: i32) {
        if let Some(dir) = self.by_id.remove(&id) {
            self.by_dir.remove(&dir);
        }
    }

    /// Removes all watches, and returns them.
    pub(super) fn take_all(&mut self) -> Vec<i32> {
        self.by_dir.clear();
        self.by_id.drain().map(|(id, _)| id).collect()
    }

    /// The core has dropped an inode.
    pub(super) fn count_let_go(&self) {
        self.let_go.fetch_add(1, Relaxed);
    }

    pub(super) fn is_to_sweep(&self) -> bool {
        self.let_go.load(Relaxed) > SWEEP + self.by_dir.len()
    }

    /// Removes the watches of unknown directories, and returns them.
    pub(super) fn sweep(&mut self, is_known: impl Fn(Ino) -> bool) -> Vec<i32> {
        self.let_go.store(0, Relaxed);
        let gone = self.by_dir.extract_if(|ino, _| !is_known(*ino));
        let gone: Vec<i32> = gone.map(|(_, watch)| watch.id).collect();
        for id in &gone {
            self.by_id.remove(id);
        }
        gone
    }

    pub(super) fn len(&self) -> usize {
        self.by_dir.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.by_dir.len() as u64 * COST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_agree_whatever_becomes_of_a_directory() {
        let mut watches = Watches::at_most(3);
        watches.note(Ino(2), 1);
        watches.note(Ino(3), 2);
        watches.note(Ino(4), 3);
        assert!(!watches.has_room());
        // It has another number now; another directory has another watch.
        watches.note(Ino(5), 1);
        watches.note(Ino(3), 7);
        let known = |watches: &Watches, dir| watches.since(Ino(dir)).is_some();
        assert!(!known(&watches, 2) && known(&watches, 5) && known(&watches, 3));
        assert_eq!(
            [1, 2, 7].map(|id| watches.dir(id)),
            [Some(Ino(5)), None, Some(Ino(3))]
        );
        watches.ended(7);
        watches.ended(7);
        assert!(!known(&watches, 3) && watches.has_room());
        assert_eq!(watches.sweep(|ino| ino == Ino(4)), [1]);
        assert_eq!((watches.len(), watches.dir(3)), (1, Some(Ino(4))));
        assert_eq!(watches.take_all(), [3]);
        assert_eq!((watches.len(), watches.bytes()), (0, 0));
    }

    #[test]
    fn it_is_looked_for_what_is_not_known_when_enough_was_let_go() {
        let watches = Watches::at_most(3);
        for _ in 0..SWEEP {
            assert!(!watches.is_to_sweep());
            watches.count_let_go();
        }
        watches.count_let_go();
        assert!(watches.is_to_sweep());
    }
}
