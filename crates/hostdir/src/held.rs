//! Descriptors that are held because an inode could not be reached, or not be written, otherwise.
//!
//! *Open for writing*: one a file, however often it is open. *Without a name*: what lost its last name by an operation from
//! above, until the core knows it no longer; mostly that is at once. *Displaced*: what lost the name by which it was known and
//! has others, the latest of them; a lookup of another name makes them needless.
//!
//! Of the first two there are as many as programs need. So before the process has no descriptor left for anything else they are refused (`ENFILE`).

use holdfast_core::types::{Errno, Ino, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::descriptors::Descriptors;

/// Descriptors that are left for all else.
const RESERVE: u64 = 256;
/// Displaced inodes that are reached all the same, at most.
const DISPLACED: usize = 64;

struct Writer {
    open: Arc<OwnedFd>,
    count: u64,
}

pub(crate) struct Held {
    most: usize,
    writers: Mutex<HashMap<Ino, Writer>>,
    nameless: Descriptors,
    displaced: Descriptors,
}

impl Held {
    /// This process may have so many descriptors, of which so many are used for other things.
    pub(crate) fn new(all: u64, others: usize) -> Self {
        let most = all.saturating_sub(RESERVE + (others + DISPLACED) as u64);
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            writers: Mutex::default(),
            nameless: Descriptors::at_most(usize::MAX),
            displaced: Descriptors::at_most(DISPLACED),
        }
    }

    /// Is there room for one more?
    ///
    /// # Errors
    /// `ENFILE`.
    pub(crate) fn room(&self) -> Result<()> {
        match self.writers.lock().len() + self.nameless.len() < self.most {
            true => Ok(()),
            false => Err(Errno::ENFILE),
        }
    }

    /// A file that is open for writing.
    pub(crate) fn writer(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        let writers = self.writers.lock();
        writers.get(&ino).map(|writer| Arc::clone(&writer.open))
    }

    /// One that is open for writing is opened once more. Is it?
    pub(crate) fn open_again(&self, ino: Ino) -> bool {
        let mut writers = self.writers.lock();
        let writer = writers.get_mut(&ino);
        writer.map(|writer| writer.count += 1).is_some()
    }

    /// A file was opened for writing by this.
    pub(crate) fn opened(&self, ino: Ino, descriptor: OwnedFd) -> Arc<OwnedFd> {
        let descriptor = Arc::new(descriptor);
        let mut writers = self.writers.lock();
        let writer = writers.entry(ino).or_insert_with(|| Writer {
            open: Arc::clone(&descriptor),
            count: 0,
        });
        writer.count += 1;
        let open = Arc::clone(&writer.open);
        drop(writers);
        open
    }

    /// One opening of a file ends; with the last one its descriptor is closed, which may wait for the host.
    pub(crate) fn close(&self, ino: Ino) {
        let mut writers = self.writers.lock();
        let mut last = None;
        if let Some(writer) = writers.get_mut(&ino) {
            writer.count -= 1;
            if writer.count == 0 {
                last = writers.remove(&ino);
            }
        }
        drop(writers);
        drop(last);
    }

    /// An inode has lost its last name, or has never had one.
    pub(crate) fn lost_last(&self, ino: Ino, descriptor: OwnedFd) {
        self.nameless.keep(ino, descriptor);
    }

    /// An inode has lost the name by which it was known.
    pub(crate) fn lost_one(&self, ino: Ino, descriptor: OwnedFd) {
        self.displaced.keep(ino, descriptor);
    }

    /// An inode without names got one.
    pub(crate) fn named(&self, ino: Ino) {
        self.nameless.set_aside(ino);
    }

    /// What has no name.
    pub(crate) fn nameless(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        self.nameless.get(ino)
    }

    /// What is not where it was.
    pub(crate) fn displaced(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        self.displaced.get(ino)
    }

    /// Is there a descriptor of this inode?
    pub(crate) fn has(&self, ino: Ino) -> bool {
        let is_written = self.writers.lock().contains_key(&ino);
        is_written || self.nameless(ino).is_some() || self.displaced(ino).is_some()
    }

    /// The core has let an inode go. Waits for nothing. Is there now a file without names to be closed, so that the host frees its space?
    pub(crate) fn forget(&self, ino: Ino) -> bool {
        self.displaced.set_aside(ino);
        self.nameless.set_aside(ino)
    }

    /// Closes what was set aside.
    pub(crate) fn tidy(&self) {
        self.nameless.tidy();
        self.displaced.tidy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn open() -> OwnedFd {
        OwnedFd::from(File::open("/").unwrap())
    }

    #[test]
    fn a_file_is_closed_with_its_last_opening() {
        let held = Held::new(10_000, 0);
        assert!(!held.open_again(Ino(2)) && held.writer(Ino(2)).is_none());
        let first = held.opened(Ino(2), open());
        assert!(held.open_again(Ino(2)));
        // Another thread was faster: it is closed.
        assert!(Arc::ptr_eq(&first, &held.opened(Ino(2), open())));
        held.close(Ino(2));
        held.close(Ino(2));
        assert!(held.writer(Ino(2)).is_some());
        held.close(Ino(2));
        assert!(held.writer(Ino(2)).is_none());
        assert_eq!(Arc::strong_count(&first), 1);
        held.close(Ino(2));
    }

    #[test]
    fn what_programs_hold_is_refused_before_nothing_is_left() {
        let held = Held::new(RESERVE + DISPLACED as u64 + 12, 10);
        held.room().unwrap();
        held.opened(Ino(2), open());
        held.lost_last(Ino(3), open());
        assert_eq!(held.room(), Err(Errno::ENFILE));
        assert!(held.forget(Ino(3)) && !held.forget(Ino(3)));
        held.room().unwrap();
        held.tidy();
    }
}
