//! The file system of an inode or an open file, and the state that outlives it.
//!
//! A [`crate::Node`] is a single pointer. When the last one of an orphan is dropped, it finds the
//! file system here by the small number in the inode. That is rare: operations free orphans
//! themselves. Open files are counted here per core, so that open and close write nothing shared. A
//! close looks up the file system only if a lock, a watch or the store needs it.
//!
//! *Invariants.* A place belongs to one file system at a time, and is reused only after all files
//! that were opened in it are closed. So an open file belongs to the file system of its place, or
//! to one that no longer exists.
//!
//! *Locking.* `SLOTS` and `Slot::core` are leaves, held for a few instructions.

use holdfast_sync::ShardedCounter;
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::core::Core;
use crate::numbers::Numbers;
use crate::types::{Errno, Ino, Result};

/// All places, by their numbers; each is leaked.
static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

/// The place of a file system: allocated for ever, and used by one after the other.
pub(crate) struct Slot {
    number: u16,
    taken: AtomicBool,
    core: RwLock<Weak<Core>>,
    /// Was there ever a watch?
    watched: AtomicBool,
    /// Files opened minus files closed.
    open_files: ShardedCounter,
    /// Assigns the numbers of lock owners.
    owners: Numbers,
}

impl Slot {
    fn new(number: u16) -> Self {
        Self {
            number,
            taken: AtomicBool::new(true),
            core: RwLock::default(),
            watched: AtomicBool::new(false),
            open_files: ShardedCounter::new(),
            owners: Numbers::after(Ino(0)),
        }
    }

    /// The file system, if it still exists.
    #[cold]
    pub(crate) fn core(&self) -> Option<Arc<Core>> {
        self.core.read().upgrade()
    }

    /// Notes that there is a watch.
    pub(crate) fn watch(&self) {
        // Written once: the flag is never cleared while the place is taken.
        if !self.is_watched() {
            self.watched.store(true, Ordering::Release);
        }
    }

    /// May there be a watch?
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// A number that no other open file of this place ever had.
    pub(crate) fn assign_owner(&self) -> u64 {
        self.owners.assign().0
    }

    /// Number of open files. A sum over cores: exact only while no file is opened or closed.
    pub(crate) fn open_files(&self) -> u64 {
        u64::try_from(self.open_files.sum()).unwrap_or(0)
    }

    /// Takes the place if it is free and no file of an earlier owner is open.
    fn take(&self) -> bool {
        // Every open is visible here: it happened before `taken` was released. A close on another
        // core may not be visible yet; the place is then skipped for now.
        let free = !self.taken.load(Ordering::Acquire) && self.open_files() == 0;
        if free {
            self.watched.store(false, Ordering::Relaxed);
            self.taken.store(true, Ordering::Relaxed);
        }
        free
    }
}

/// Counts an open file as long as it exists.
pub(crate) struct Opened(&'static Slot);

impl Opened {
    #[inline]
    pub(crate) fn at(place: &'static Slot) -> Self {
        place.open_files.add(1);
        Self(place)
    }

    #[inline]
    pub(crate) fn place(&self) -> &'static Slot {
        self.0
    }
}

impl Drop for Opened {
    #[inline]
    fn drop(&mut self) {
        self.0.open_files.add(-1);
    }
}

/// A file system's ownership of its place. Dropped after the inodes.
pub(crate) struct Registration(&'static Slot);

impl Registration {
    /// Takes a place.
    ///
    /// # Errors
    /// `ENFILE` if all 65,536 places belong to file systems or have open files.
    pub(crate) fn new() -> Result<Self> {
        let mut slots = SLOTS.lock();
        if let Some(free) = slots.iter().copied().find(|slot| slot.take()) {
            return Ok(Self(free));
        }
        let number = u16::try_from(slots.len()).map_err(|_| Errno::ENFILE)?;
        let slot: &Slot = Box::leak(Box::new(Slot::new(number)));
        slots.push(slot);
        Ok(Self(slot))
    }

    /// Number of the place.
    pub(crate) fn number(&self) -> u16 {
        self.0.number
    }

    /// The place.
    #[inline]
    pub(crate) fn place(&self) -> &'static Slot {
        self.0
    }

    /// Makes the file system findable by its number, until the result is dropped.
    pub(crate) fn publish(&self, core: Weak<Core>) -> RouteGuard {
        *self.0.core.write() = core;
        RouteGuard(self.0)
    }
}

/// Exists as long as handles of the file system: nodes and files find it that long.
pub(crate) struct RouteGuard(&'static Slot);

impl Drop for RouteGuard {
    fn drop(&mut self) {
        *self.0.core.write() = Weak::new();
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Release: the next owner sees all counts.
        self.0.taken.store(false, Ordering::Release);
    }
}

/// The file system of this number, if it still exists.
#[cold]
pub(crate) fn find(number: u16) -> Option<Arc<Core>> {
    let slot = SLOTS.lock().get(usize::from(number)).copied();
    slot?.core()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_living_differ_and_nobody_is_found_before_the_announcement() {
        let (a, b) = (Registration::new().unwrap(), Registration::new().unwrap());
        assert_ne!(a.number(), b.number());
        assert!(find(a.number()).is_none());
        assert!(find(u16::MAX).is_none());
    }

    #[test]
    fn a_place_is_taken_again_when_the_last_file_is_closed() {
        let first = Registration::new().unwrap();
        let (number, file) = (first.number(), Opened::at(first.place()));
        first.place().watch();
        drop(first);
        let more: Vec<_> = (0..8).map(|_| Registration::new().unwrap()).collect();
        assert!(more.iter().all(|other| other.number() != number));
        assert!(file.place().core().is_none());
        let owner = file.place().assign_owner();
        drop(file);
        // Concurrent tests take places too.
        let later: Vec<_> = (0..100).map(|_| Registration::new().unwrap()).collect();
        if let Some(same) = later.iter().find(|same| same.number() == number) {
            assert!(!same.place().is_watched());
            assert_ne!(same.place().assign_owner(), owner);
        }
    }
}
