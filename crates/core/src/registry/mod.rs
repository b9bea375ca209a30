//! Which file system an inode or an open file belongs to, and what outlives it.
//!
//! A [`crate::Node`] is one pointer, so that it costs nothing to copy but its count. The last one of
//! an orphan has to tell the file system, and finds it here by the small number that every inode
//! carries. That is rare: operations end orphans themselves. An open file is counted here, so that to
//! open one and to close it changes nothing that other threads change; its end asks for the file
//! system only if that has something to hear.
//!
//! *Invariants.* A place is taken by one file system at a time, and not before all files are closed that
//! were opened in the one before. So a file that is open belongs to the file system of its place, or
//! to one that is gone.
//!
//! *Locking.* `TAKING` orders those who take a place; the way to a file system has locks for each core
//! ([`route`]). All are leaves. Finding a place takes none.

mod route;

use holdfast_sync::ShardedCounter;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, Weak};

use crate::file_system::Core;
use crate::numbers::Numbers;
use crate::types::{Errno, Ino, Result};
use route::{Route, Underway};

/// Places are made so many at a time.
const BLOCK: usize = 256;
const BLOCKS: usize = (u16::MAX as usize + 1) / BLOCK;

type Block = Box<[OnceLock<Place>; BLOCK]>;

static PLACES: [OnceLock<Block>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];
static TAKING: Mutex<()> = Mutex::new(());

/// A file system's place; it is there for ever, and taken by one after the other.
pub(crate) struct Place {
    number: u16,
    taken: AtomicBool,
    route: Route<Core>,
    /// Has anybody ever asked to hear of events?
    watched: AtomicBool,
    /// Files that were opened, less those that were closed.
    open_files: ShardedCounter,
    /// Deals the identities of open files.
    owners: Numbers,
}

impl Place {
    fn new(number: u16) -> Self {
        Self {
            number,
            taken: AtomicBool::new(false),
            route: Route::new(),
            watched: AtomicBool::new(false),
            open_files: ShardedCounter::new(),
            owners: Numbers::scattered_after(Ino(0)),
        }
    }

    /// Its file system, if that still lives.
    #[cold]
    pub(crate) fn core(&self) -> Option<Underway<'_, Core>> {
        self.route.take()
    }

    /// Somebody wants to hear of events.
    pub(crate) fn watch(&self) {
        // Mostly somebody did before, and then nothing is written.
        if !self.is_watched() {
            self.watched.store(true, Ordering::Release);
        }
    }

    /// Is there perhaps somebody who does?
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// An identity that no open file of this place ever had.
    pub(crate) fn deal_owner(&self) -> u64 {
        self.owners.deal().0
    }

    /// Files that are open. A sum over cores: exact only while none is opened or closed.
    pub(crate) fn open_files(&self) -> u64 {
        u64::try_from(self.open_files.sum()).unwrap_or(0)
    }

    /// Takes it, if nobody has it and nothing is left of who had it.
    fn take(&self) -> bool {
        // All that was opened is counted here: whoever let the place go had seen it. What was closed
        // elsewhere may not be seen yet; then the place is left alone for a while longer.
        let free = !self.taken.load(Ordering::Acquire) && self.open_files() == 0;
        if free {
            self.watched.store(false, Ordering::Relaxed);
            self.taken.store(true, Ordering::Relaxed);
        }
        free
    }
}

/// An open file is counted as long as it has this.
pub(crate) struct Opened(&'static Place);

impl Opened {
    #[inline]
    pub(crate) fn at(place: &'static Place) -> Self {
        place.open_files.add(1);
        Self(place)
    }

    #[inline]
    pub(crate) fn place(&self) -> &'static Place {
        self.0
    }
}

impl Drop for Opened {
    #[inline]
    fn drop(&mut self) {
        self.0.open_files.add(-1);
    }
}

/// What a file system has of its place. Dropped after the inodes.
pub(crate) struct Registration(&'static Place);

fn place(number: u16) -> &'static Place {
    let number_in_all = usize::from(number);
    let block =
        PLACES[number_in_all / BLOCK].get_or_init(|| Box::new([const { OnceLock::new() }; BLOCK]));
    block[number_in_all % BLOCK].get_or_init(|| Place::new(number))
}

impl Registration {
    /// Takes a place.
    ///
    /// # Errors
    /// `ENFILE` when the process has 65,536 file systems already (or files open of some that are gone).
    pub(crate) fn new() -> Result<Self> {
        let _taking = TAKING.lock();
        let free = (0..=u16::MAX).map(place).find(|place| place.take());
        free.map(Self).ok_or(Errno::ENFILE)
    }

    /// Its number.
    pub(crate) fn number(&self) -> u16 {
        self.0.number
    }

    /// The place itself.
    #[inline]
    pub(crate) fn place(&self) -> &'static Place {
        self.0
    }

    /// From now on the number leads to this file system, as long as the result lives.
    pub(crate) fn announce(&self, core: Weak<Core>) -> Announced {
        self.0.route.open(core);
        Announced(self.0)
    }
}

/// Handles of the file system exist. Who has none, but a file or a node of it, finds it as long.
pub(crate) struct Announced(&'static Place);

impl Drop for Announced {
    fn drop(&mut self) {
        self.0.route.close();
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Release: who takes it next sees what was counted.
        self.0.taken.store(false, Ordering::Release);
    }
}

/// The file system of this number, if it still lives.
#[cold]
pub(crate) fn find(number: u16) -> Option<Underway<'static, Core>> {
    place(number).core()
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
        let others: Vec<_> = (0..8).map(|_| Registration::new().unwrap()).collect();
        assert!(others.iter().all(|other| other.number() != number));
        assert!(file.place().core().is_none());
        let owner = file.place().deal_owner();
        drop(file);
        // Tests beside this one take places too.
        let again: Vec<_> = (0..100).map(|_| Registration::new().unwrap()).collect();
        if let Some(again) = again.iter().find(|again| again.number() == number) {
            assert!(!again.place().is_watched());
            assert_ne!(again.place().deal_owner(), owner);
        }
    }
}
