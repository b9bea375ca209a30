//! Descriptors that are kept open because an inode could not be reached or written without them.
//!
//! - *Open*: one `O_PATH` descriptor for each inode that is open above.
//! - *Open for writing*: one for each file that is open for writing.
//! - *Without a name*: for an inode that lost its last name by an operation of the core, until the
//!   core
//!   drops it, mostly at once.
//! - *Displaced*: for the latest inodes that lost the name they were known by and have others; a
//!   lookup of
//!   another name makes it needless.
//! - *Looked up*: for inodes looked up recently, while others replace names.
//!
//! Programs decide the number of the first three. When only a reserve of descriptors is left, files
//! are no longer opened for writing (`ENFILE`). A file opened for reading is then reached by its
//! name or handle.

use holdfast_core::types::{Errno, Ino, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::descriptors::Descriptors;

/// Descriptors reserved for other uses.
const RESERVE: u64 = 256;
/// Most displaced inodes.
const DISPLACED: usize = 64;
/// Most looked up inodes: more than there are between a lookup and its open.
const LOOKED_UP: usize = 1024;
/// Their share, if this process may have few descriptors.
const LOOKED_UP_SHARE: u64 = 8;

/// An inode that is open above.
#[derive(Default)]
struct Open {
    /// An `O_PATH` descriptor. `None`: it is open for writing only, or there was no room.
    named: Option<Arc<OwnedFd>>,
    /// Opened for reading with the opener's credentials, if the host bases the content on these.
    reader: Option<Arc<OwnedFd>>,
    /// How often it is open, for reading or writing.
    count: u64,
    writer: Option<Arc<OwnedFd>>,
    /// How often it is open for writing.
    writers: u64,
}

pub(crate) struct Held {
    most: usize,
    open: Mutex<HashMap<Ino, Open>>,
    /// Descriptors in `open`.
    used: AtomicUsize,
    /// Inodes without a name.
    pub(crate) nameless: Descriptors,
    /// Inodes that lost the name they were known by.
    pub(crate) displaced: Descriptors,
    /// Inodes that were looked up, and may lose their name before their use.
    pub(crate) looked_up: Descriptors,
}

impl Held {
    /// `all`: the limit of this process. `others`: those used elsewhere.
    pub(crate) fn new(all: u64, others: usize) -> Self {
        let share = usize::try_from(all / LOOKED_UP_SHARE);
        let looked_up = LOOKED_UP.min(share.unwrap_or(LOOKED_UP));
        let most = all.saturating_sub(RESERVE + (others + DISPLACED + looked_up) as u64);
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            open: Mutex::default(),
            used: AtomicUsize::new(0),
            nameless: Descriptors::at_most(usize::MAX),
            displaced: Descriptors::at_most(DISPLACED),
            looked_up: Descriptors::at_most(looked_up),
        }
    }

    /// Is there room for another one?
    pub(crate) fn has_room(&self) -> bool {
        // Relaxed: the reserve is larger than the error.
        self.used.load(Relaxed) + self.nameless.len() < self.most
    }

    /// The same for opening a file for writing.
    ///
    /// # Errors
    /// `ENFILE`.
    pub(crate) fn room(&self) -> Result<()> {
        self.has_room().then_some(()).ok_or(Errno::ENFILE)
    }

    /// The descriptor of a file that is open for writing.
    pub(crate) fn writer(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        self.open.lock().get(&ino)?.writer.clone()
    }

    /// Counts another open of an open inode, for writing if `writes`. `false`: it needs a
    /// descriptor.
    pub(crate) fn count_open(&self, ino: Ino, writes: bool) -> bool {
        let mut table = self.open.lock();
        let Some(open) = table.get_mut(&ino) else {
            return false;
        };
        let slot = match writes {
            true => &open.writer,
            false => &open.named,
        };
        let is_there = slot.is_some();
        if is_there {
            open.count += 1;
            open.writers += u64::from(writes);
        }
        is_there
    }

    /// Counts an open, and stores its descriptor. `None`: there was no room for an `O_PATH`
    /// descriptor.
    pub(crate) fn opened(&self, ino: Ino, descriptor: Option<Arc<OwnedFd>>, writes: bool) {
        let mut table = self.open.lock();
        let open = table.entry(ino).or_default();
        open.count += 1;
        open.writers += u64::from(writes);
        let slot = match writes {
            true => &mut open.writer,
            false => &mut open.named,
        };
        // Otherwise another thread stored one first; this one is closed without the lock.
        let mut rest = descriptor;
        if slot.is_none() {
            *slot = rest.take();
            self.used.fetch_add(usize::from(slot.is_some()), Relaxed);
        }
        drop(table);
        drop(rest);
    }

    /// Counts a close. The last one closes the descriptors, which may wait for the host.
    pub(crate) fn close(&self, ino: Ino, writes: bool) {
        let mut table = self.open.lock();
        let Some(open) = table.get_mut(&ino) else {
            return;
        };
        open.count = open.count.saturating_sub(1);
        open.writers = open.writers.saturating_sub(u64::from(writes));
        let mut closed = [None, None, None];
        if open.writers == 0 {
            closed[0] = open.writer.take();
        }
        if open.count == open.writers {
            closed[1] = open.named.take();
            closed[2] = open.reader.take();
        }
        if open.count == 0 {
            table.remove(&ino);
        }
        self.used
            .fetch_sub(closed.iter().flatten().count(), Relaxed);
        drop(table);
        drop(closed);
    }

    /// Stores the descriptor that an open inode is read by.
    pub(crate) fn read_by(&self, ino: Ino, descriptor: OwnedFd) {
        let mut rest = Some(Arc::new(descriptor));
        let mut table = self.open.lock();
        if let Some(open) = table.get_mut(&ino)
            && open.reader.is_none()
        {
            open.reader = rest.take();
            self.used.fetch_add(1, Relaxed);
        }
        drop(table);
        drop(rest);
    }

    /// The descriptor that an open inode must be read by, if there is one.
    pub(crate) fn reader(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        self.open.lock().get(&ino)?.reader.clone()
    }

    /// A descriptor of an inode, regardless of its names.
    pub(crate) fn get(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        let open = {
            let table = self.open.lock();
            let open = table.get(&ino);
            open.and_then(|open| open.writer.clone().or_else(|| open.named.clone()))
        };
        let open = open.or_else(|| self.nameless.get(ino));
        let open = open.or_else(|| self.displaced.get(ino));
        open.or_else(|| self.looked_up.get(ino))
    }

    /// The core has dropped an inode. Does not wait. Must a file be closed, so that the host frees
    /// its space?
    pub(crate) fn forget(&self, ino: Ino) -> bool {
        self.displaced.retire(ino);
        let looked_up = self.looked_up.retire(ino);
        self.nameless.retire(ino) || looked_up
    }

    /// Closes what was set aside.
    pub(crate) fn tidy(&self) {
        self.nameless.tidy();
        self.displaced.tidy();
        self.looked_up.tidy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn open() -> OwnedFd {
        OwnedFd::from(File::open("/").unwrap())
    }

    fn opened(held: &Held, ino: u64, writes: bool) -> Arc<OwnedFd> {
        let descriptor = Arc::new(open());
        held.opened(Ino(ino), Some(Arc::clone(&descriptor)), writes);
        descriptor
    }

    #[test]
    fn a_file_is_closed_with_its_last_opening() {
        for writes in [false, true] {
            let held = Held::new(10_000, 0);
            assert!(!held.count_open(Ino(2), writes));
            let first = opened(&held, 2, writes);
            assert!(held.count_open(Ino(2), writes));
            // As if another thread was first: it is closed.
            assert_eq!(Arc::strong_count(&opened(&held, 2, writes)), 1);
            held.close(Ino(2), writes);
            held.close(Ino(2), writes);
            assert!(Arc::ptr_eq(&held.get(Ino(2)).unwrap(), &first));
            assert_eq!(held.writer(Ino(2)).is_some(), writes);
            held.close(Ino(2), writes);
            assert!(held.get(Ino(2)).is_none());
            assert_eq!(Arc::strong_count(&first), 1);
            held.close(Ino(2), writes);
        }
    }

    #[test]
    fn a_file_that_is_read_stays_when_its_writer_closes_it_and_the_writers_descriptor_does_not() {
        let held = Held::new(10_000, 0);
        let writer = opened(&held, 2, true);
        assert!(!held.count_open(Ino(2), false), "it needs one of its own");
        opened(&held, 2, false);
        held.close(Ino(2), true);
        assert_eq!(Arc::strong_count(&writer), 1);
        assert!(held.writer(Ino(2)).is_none() && held.get(Ino(2)).is_some());
        held.close(Ino(2), false);
        assert!(held.get(Ino(2)).is_none());
        assert_eq!(held.used.load(Relaxed), 0);
    }

    #[test]
    fn what_programs_hold_is_refused_before_nothing_is_left() {
        let all = 2000;
        let others = all - RESERVE - DISPLACED as u64 - all / LOOKED_UP_SHARE - 2;
        let held = Held::new(all, others as usize);
        held.room().unwrap();
        opened(&held, 2, false);
        held.nameless.keep(Ino(3), open());
        assert_eq!(held.room(), Err(Errno::ENFILE));
        // What is read needs none.
        held.opened(Ino(4), None, false);
        assert!(held.get(Ino(4)).is_none());
        assert!(held.forget(Ino(3)) && !held.forget(Ino(3)));
        held.room().unwrap();
        held.tidy();
    }
}
