//! Requests to the store about files that are not mapped.
//!
//! The pages of such a file cannot record that its map is being loaded, or that it is being read
//! uncached. So it is recorded here, as a [`Flight`] of the whole file.
//!
//! *Invariants.* At most one flight of a file loads its map. The content of a file that is not
//! mapped changes only together with a [`cut`](Unmapped::cut). Mapping the file is a cut as well.
//!
//! *Locking.* Flights begin and are cut with the pages of their file locked. A shard is a leaf.

use holdfast_cache::Flight;
use parking_lot::Mutex;
use std::sync::Arc;

use crate::types::{Ino, Result};

const SHARDS: usize = 64;

/// Flights of files that are not mapped.
pub(crate) struct Unmapped([Mutex<Vec<Entry>>; SHARDS]);

struct Entry {
    ino: Ino,
    flight: Arc<Flight>,
    /// Does it load the map?
    maps: bool,
}

/// A flight with its entry in the table, which is removed on drop.
pub(crate) struct Noted<'t> {
    shard: &'t Mutex<Vec<Entry>>,
    pub(crate) flight: Arc<Flight>,
}

impl Unmapped {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }

    fn shard(&self, ino: Ino) -> &Mutex<Vec<Entry>> {
        &self.0[ino.0 as usize % SHARDS]
    }

    /// Begins to map a file, or returns the flight that maps it already, and its cuts.
    pub(crate) fn begin_map(&self, ino: Ino) -> std::result::Result<Noted<'_>, (Arc<Flight>, u32)> {
        let shard = self.shard(ino);
        let mut entries = shard.lock();
        let of_it = |entry: &&Entry| entry.ino == ino && entry.maps && !entry.flight.is_cut();
        if let Some(entry) = entries.iter().find(of_it) {
            return Err((Arc::clone(&entry.flight), 0));
        }
        Ok(Self::note(shard, &mut entries, ino, true))
    }

    /// Begins another request; its answer is valid unless the flight was cut meanwhile.
    pub(crate) fn begin_ask(&self, ino: Ino) -> Noted<'_> {
        let shard = self.shard(ino);
        Self::note(shard, &mut shard.lock(), ino, false)
    }

    fn note<'t>(
        shard: &'t Mutex<Vec<Entry>>,
        entries: &mut Vec<Entry>,
        ino: Ino,
        maps: bool,
    ) -> Noted<'t> {
        let flight = Arc::<Flight>::default();
        entries.push(Entry {
            ino,
            flight: Arc::clone(&flight),
            maps,
        });
        Noted { shard, flight }
    }

    /// The file has changed, or is mapped now: answers to requests in flight are invalid.
    pub(crate) fn cut(&self, ino: Ino) {
        let entries = self.shard(ino).lock();
        let of_it = entries.iter().filter(|entry| entry.ino == ino);
        of_it.for_each(|entry| entry.flight.cut());
    }
}

impl Noted<'_> {
    /// Wakes the waiters of the flight.
    pub(crate) fn end(self, end: Result<()>) {
        self.flight.end(end);
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let flight = &self.flight;
        let mut entries = self.shard.lock();
        entries.retain(|entry| !Arc::ptr_eq(&entry.flight, flight));
        drop(entries);
        // After a panic, too.
        flight.end(Ok(()));
    }
}
