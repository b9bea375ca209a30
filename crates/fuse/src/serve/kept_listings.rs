//! Which directories the kernel may keep a listing of, and when it is told to drop that.
//!
//! The kernel keeps a listing (`FOPEN_CACHE_DIR`) in pages of the directory. Where a reader begins
//! at the start it compares the directory's version with that of the listing, and drops one that
//! is older. At any other position it takes what is there. A program that opens a directory and
//! seeks to a position which it remembers would see names that are gone. So a change drops the
//! listing before its request is answered. The kernel holds the directory's lock until then: no
//! reader is in between.
//!
//! Only what may be kept is dropped. A listing is kept from the reply that shows its end. What
//! changes before that end makes the listing *stale*, and it is dropped with its end: were its
//! pages dropped earlier, the kernel would add to what is left of them, and keep no listing of that
//! directory any more.
//!
//! Changes that do not come through the mount are told by [`KernelCaches`](super::KernelCaches).
//!
//! # Invariants
//! A directory of which the kernel keeps a complete listing, or a part of one, has a state here.
//! The table is bounded: where a shard is full, what it has is dropped by the kernel as well.
//!
//! # Locking
//! Shards are leaves. The kernel is told with none of them locked.

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

/// What the kernel may keep of a directory's listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A part that is as the directory.
    Begun,
    /// A part that is older than the directory.
    Stale,
    /// All of it.
    Complete,
}

/// The directories of which the kernel may keep a listing.
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

    /// A part of a listing is about to be given that begins at `offset`; `is_end`: it is empty.
    pub(super) fn gives(&self, notifier: &Notifier, dir: Ino, offset: u64, is_end: bool) {
        if is_end {
            if self.ends(notifier, dir) {
                notifier.drop_listing(dir);
            }
        } else if offset == 0 {
            self.begins(notifier, dir);
        }
    }

    fn begins(&self, notifier: &Notifier, dir: Ino) {
        let dropped = {
            let mut shard = self.shard(dir).lock();
            let dropped = make_room(&mut shard, dir);
            shard.entry(dir).or_insert(State::Begun);
            dropped
        };
        tell(notifier, &dropped);
    }

    /// Is what the kernel has at the end of a listing older than the directory?
    fn ends(&self, notifier: &Notifier, dir: Ino) -> bool {
        let (is_stale, dropped) = {
            let mut shard = self.shard(dir).lock();
            let dropped = make_room(&mut shard, dir);
            let is_stale = match shard.entry(dir) {
                Entry::Occupied(state) if *state.get() == State::Stale => {
                    state.remove();
                    true
                }
                state => {
                    state.insert_entry(State::Complete);
                    false
                }
            };
            (is_stale, dropped)
        };
        tell(notifier, &dropped);
        is_stale
    }

    /// The names of a directory changed by a request that is not answered yet.
    pub(super) fn changed(&self, notifier: &Notifier, dir: Ino) {
        let is_kept = {
            let mut shard = self.shard(dir).lock();
            match shard.entry(dir) {
                Entry::Vacant(_) => false,
                Entry::Occupied(state) if *state.get() == State::Complete => {
                    state.remove();
                    true
                }
                Entry::Occupied(mut state) => {
                    state.insert(State::Stale);
                    false
                }
            }
        };
        if is_kept {
            notifier.drop_listing(dir);
        }
    }
}

/// Empties a shard that has no room for this directory; says what was there.
fn make_room(shard: &mut HashMap<Ino, State>, dir: Ino) -> HashMap<Ino, State> {
    match shard.len() >= SHARD && !shard.contains_key(&dir) {
        true => mem::take(shard),
        false => HashMap::new(),
    }
}

fn tell(notifier: &Notifier, dropped: &HashMap<Ino, State>) {
    for dir in dropped.keys() {
        notifier.drop_listing(*dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: Ino = Ino(7);

    /// How many listings are dropped by what is done.
    fn drops(listings: &KeptListings, act: impl FnOnce(&KeptListings, &Notifier)) -> usize {
        // Without a device what is told waits.
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
