//! Which directories the kernel may cache a listing of, and when it must drop it.
//!
//! The kernel caches a listing (`FOPEN_CACHE_DIR`) in pages of the directory. A reader at offset 0
//! compares the directory's version with that of the listing, and drops an older one. At any other
//! offset it uses the pages unchecked, so a program that opens a directory and seeks would see
//! removed names. A change therefore drops the listing before its request is answered. The kernel
//! holds the directory's lock until then, so no reader runs in between.
//!
//! A listing is cached from the reply that shows its end, and only then is there anything to drop.
//! A change before that end makes the listing *stale*, and it is dropped at its end. If its pages
//! were dropped earlier, the kernel would append to the rest and never cache a listing of that
//! directory again.
//!
//! Changes made past the mount are handled by [`KernelCaches`](super::KernelCaches).
//!
//! # Invariants
//! A directory with a complete or partial listing in the kernel has a state here. The table is
//! bounded: when a shard is full, its listings are dropped by the kernel as well.
//!
//! # Locking
//! Shards are leaves. No shard is locked during a notification.

use crate::Notifier;
use holdfast_core::types::Ino;
use parking_lot::Mutex;
use std::{
    collections::{HashMap, hash_map::Entry},
    mem,
};

const SHARDS: usize = 64;
/// Directories in a shard, at most.
const SHARD: usize = 4096;

/// What the kernel may cache of a directory's listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A part, up to date.
    Begun,
    /// A part, older than the directory.
    Stale,
    /// All of it.
    Complete,
}

/// The directories with a cached listing.
pub(super) struct KeptListings {
    /// Each guards the states of some directories.
    shards: [Mutex<HashMap<Ino, State>>; SHARDS],
}

impl Default for KeptListings {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl KeptListings {
    fn shard(&self, dir: Ino) -> &Mutex<HashMap<Ino, State>> {
        &self.shards[dir.0 as usize % SHARDS]
    }

    /// The reply holds the part of a listing at `offset`; `is_end`: it is empty.
    pub(super) fn gives(&self, notifier: &Notifier, dir: Ino, offset: u64, is_end: bool) {
        if offset != 0 && !is_end {
            return;
        }
        let mut shard = self.shard(dir).lock();
        let mut dropped = make_room(&mut shard, dir);
        match shard.entry(dir) {
            Entry::Occupied(state) if is_end && *state.get() == State::Stale => {
                dropped.insert(dir, state.remove());
            }
            state if is_end => drop(state.insert_entry(State::Complete)),
            state => {
                state.or_insert(State::Begun);
            }
        }
        drop(shard);
        for dir in dropped.keys() {
            notifier.drop_listing(*dir);
        }
    }

    /// A request that is not answered yet changed the names of this directory.
    pub(super) fn changed(&self, notifier: &Notifier, dir: Ino) {
        let mut shard = self.shard(dir).lock();
        match shard.get_mut(&dir) {
            Some(State::Complete) => {
                shard.remove(&dir);
                drop(shard);
                notifier.drop_listing(dir);
            }
            Some(state) => *state = State::Stale,
            None => {}
        }
    }
}

/// Empties a shard that has no room for this directory; returns its entries.
fn make_room(shard: &mut HashMap<Ino, State>, dir: Ino) -> HashMap<Ino, State> {
    match shard.len() >= SHARD && !shard.contains_key(&dir) {
        true => mem::take(shard),
        false => HashMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: Ino = Ino(7);

    /// How many listings are dropped by what is done.
    fn drops(listings: &KeptListings, act: impl FnOnce(&KeptListings, &Notifier)) -> usize {
        // Without a device, notifications stay queued.
        let notifier = Notifier::new();
        act(listings, &notifier);
        notifier.waiting()
    }

    fn gives(listings: &KeptListings, offset: u64, is_end: bool) -> usize {
        drops(listings, |it, notifier| {
            it.gives(notifier, DIR, offset, is_end);
        })
    }

    fn changed(listings: &KeptListings) -> usize {
        drops(listings, |it, notifier| it.changed(notifier, DIR))
    }

    #[test]
    fn a_complete_listing_is_dropped_once() {
        let listings = KeptListings::default();
        assert_eq!(changed(&listings), 0, "nothing is kept");
        assert_eq!(
            (gives(&listings, 0, false), gives(&listings, 9, true)),
            (0, 0)
        );
        assert_eq!((changed(&listings), changed(&listings)), (1, 0));
    }

    #[test]
    fn a_listing_that_a_change_met_is_dropped_with_its_end() {
        let listings = KeptListings::default();
        gives(&listings, 0, false);
        assert_eq!((changed(&listings), gives(&listings, 9, false)), (0, 0));
        // Another reader begins: it adds to what is there.
        assert_eq!(gives(&listings, 0, false), 0);
        assert_eq!((gives(&listings, 20, true), changed(&listings)), (1, 0));
    }

    #[test]
    fn a_reader_that_begins_beside_a_complete_listing_leaves_it_complete() {
        let listings = KeptListings::default();
        gives(&listings, 0, false);
        gives(&listings, 9, true);
        gives(&listings, 0, false);
        assert_eq!(changed(&listings), 1);
    }

    #[test]
    fn what_does_not_fit_is_dropped() {
        let listings = KeptListings::default();
        let dirs = 2 * (SHARDS * SHARD) as u64;
        let dropped = drops(&listings, |it, notifier| {
            for number in 0..dirs / SHARDS as u64 {
                it.gives(notifier, Ino(number * SHARDS as u64), 0, false);
            }
        });
        assert_eq!(dropped, SHARD);
        for shard in &listings.shards {
            assert!(shard.lock().len() <= SHARD);
        }
    }
}
