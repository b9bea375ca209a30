//! Descriptors that are held because an inode could not be reached, or not be written, otherwise.
//!
//! *Open*: an inode that is open above, one that names it (`O_PATH`), however often it is open. *Open for writing*: one a file,
//! however often. *Without a name*: what lost its last name by an operation from above, until the core knows it no longer; mostly
//! that is at once. *Displaced*: what lost the name by which it was known and has others, the latest of them; a lookup of another name makes
//! them needless. *Looked up*: while others replace names, what they led to a moment ago.
//!
//! Of the first three there are as many as programs need. When only a reserve is left for all else, files are no longer
//! opened for writing (`ENFILE`); what is opened for reading is then reached by its name, or by its handle.

use holdfast_core::types::{Errno, Ino, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::descriptors::Descriptors;

/// Descriptors that are left for all else.
const RESERVE: u64 = 256;
/// Displaced inodes that are reached all the same, at most.
const DISPLACED: usize = 64;
/// Inodes that were looked up, at most: more than there are between a lookup and the open that follows it.
const LOOKED_UP: usize = 1024;
/// Where this process may have few descriptors: so much of them.
const LOOKED_UP_SHARE: u64 = 8;

/// An inode that is open above.
#[derive(Default)]
struct Open {
    /// Names the inode. `None`: it is open for writing only, or there was no room.
    named: Option<Arc<OwnedFd>>,
    /// Open for reading with the opener's credentials, by which the host decides what it contains.
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
    nameless: Descriptors,
    displaced: Descriptors,
    looked_up: Descriptors,
}

impl Held {
    /// This process may have so many descriptors, of which so many are used for other things.
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

    /// Is there room for one more?
    pub(crate) fn has_room(&self) -> bool {
        // Relaxed: the reserve is larger than what threads can be late by.
        self.used.load(Relaxed) + self.nameless.len() < self.most
    }

    /// The same, for a file that is to be written.
    ///
    /// # Errors
    /// `ENFILE`.
    pub(crate) fn room(&self) -> Result<()> {
        match self.has_room() {
            true => Ok(()),
            false => Err(Errno::ENFILE),
        }
    }

    /// A file that is open for writing.
    pub(crate) fn writer(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        self.open.lock().get(&ino)?.writer.clone()
    }

    /// An inode that is open is opened once more, for writing if `writes`. Is it, and so that nothing else is needed?
    pub(crate) fn open_again(&self, ino: Ino, writes: bool) -> bool {
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

    /// An inode was opened, for writing by this descriptor if `writes`. `None`: there was no room for one that names it.
    pub(crate) fn opened(&self, ino: Ino, descriptor: Option<Arc<OwnedFd>>, writes: bool) {
        let mut table = self.open.lock();
        let open = table.entry(ino).or_default();
        open.count += 1;
        open.writers += u64::from(writes);
        let slot = match writes {
            true => &mut open.writer,
            false => &mut open.named,
        };
        // Else another thread was faster; this descriptor is closed with nothing locked.
        let mut rest = descriptor;
        if slot.is_none() {
            *slot = rest.take();
            self.used.fetch_add(usize::from(slot.is_some()), Relaxed);
        }
        drop(table);
        drop(rest);
    }

    /// One opening ends; with the last one its descriptor is closed, which may wait for the host.
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

    /// An inode that was opened is read by this descriptor, as long as it is open.
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

    /// What an inode that is open is read by, if it is not to be opened again for that.
    pub(crate) fn reader(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        self.open.lock().get(&ino)?.reader.clone()
    }

    /// An inode has lost its last name, or has never had one.
    pub(crate) fn lost_last(&self, ino: Ino, descriptor: OwnedFd) {
        self.nameless.keep(ino, descriptor);
    }

    /// An inode has lost the name by which it was known.
    pub(crate) fn lost_one(&self, ino: Ino, descriptor: OwnedFd) {
        self.displaced.keep(ino, descriptor);
    }

    /// An inode was looked up, and may lose its name before it is used.
    pub(crate) fn looked_up(&self, ino: Ino, descriptor: OwnedFd) {
        self.looked_up.keep(ino, descriptor);
    }

    /// An inode without names got one.
    pub(crate) fn named(&self, ino: Ino) {
        self.nameless.set_aside(ino);
    }

    /// What has no name.
    pub(crate) fn nameless(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        self.nameless.get(ino)
    }

    /// A descriptor of an inode, whatever became of its names.
    pub(crate) fn get(&self, ino: Ino) -> Option<Arc<OwnedFd>> {
        let open = {
            let table = self.open.lock();
            let open = table.get(&ino);
            open.and_then(|open| open.writer.clone().or_else(|| open.named.clone()))
        };
        let open = open.or_else(|| self.nameless(ino));
        let open = open.or_else(|| self.displaced.get(ino));
        open.or_else(|| self.looked_up.get(ino))
    }

    /// The core has let an inode go. Waits for nothing. Is there now a file without names to be closed, so that the host frees its space?
    pub(crate) fn forget(&self, ino: Ino) -> bool {
        self.displaced.set_aside(ino);
        let looked_up = self.looked_up.set_aside(ino);
        self.nameless.set_aside(ino) || looked_up
    }

    /// Closes what was set aside.
    pub(crate) fn tidy(&self) {
        self.nameless.tidy();
        self.displaced.tidy();
        self.looked_up.tidy();
    }

    /// Closes those that were looked up and not used since this was done last. Are there others?
    pub(crate) fn drop_looked_up(&self) -> bool {
        self.looked_up.drop_unused()
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
            assert!(!held.open_again(Ino(2), writes));
            let first = opened(&held, 2, writes);
            assert!(held.open_again(Ino(2), writes));
            // Another thread was faster: it is closed.
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
        assert!(!held.open_again(Ino(2), false), "it needs one of its own");
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
        held.lost_last(Ino(3), open());
        assert_eq!(held.room(), Err(Errno::ENFILE));
        // What is read needs none.
        held.opened(Ino(4), None, false);
        assert!(held.get(Ino(4)).is_none());
        assert!(held.forget(Ino(3)) && !held.forget(Ino(3)));
        held.room().unwrap();
        held.tidy();
    }
}
