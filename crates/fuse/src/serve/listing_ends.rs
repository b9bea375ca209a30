//! Where listings end of directories that the kernel opens without a request.
//!
//! A listing ends with the names that were there when it began: else a program that adds or renames while it
//! lists would never come to an end. Without an open directory nothing belongs to one listing alone, so the
//! end belongs to the directory: the last listing that began there moves it. Another that is under way
//! may then show some names that it would have left out, as POSIX allows, and goes on no longer for it than others
//! begin anew.
//!
//! # Invariants
//! What is kept is bounded, whatever the kernel asks. A shard that is full is emptied: listings under way in it
//! end where their directory ends then. That happens once in [`SHARD`] directories whose listings began.
//!
//! # Locking
//! Shards are leaves, not held while names are read.

use holdfast_core::{Listing, types::Ino};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::atomic::AtomicU64};

const SHARDS: usize = 16;
/// Directories in a shard, at most.
const SHARD: usize = 1024;

/// The ends of listings that began lately.
#[derive(Default)]
pub(super) struct ListingEnds {
    /// Each guards the ends of some directories.
    shards: [Mutex<HashMap<Ino, u64>>; SHARDS],
}

impl ListingEnds {
    /// Goes on with a listing of this directory, and keeps where it ends.
    pub(super) fn with<T>(&self, ino: Ino, list: impl FnOnce(&AtomicU64) -> T) -> T {
        let shard = &self.shards[ino.0 as usize % SHARDS];
        let before = shard.lock().get(&ino).copied();
        let end = AtomicU64::new(before.unwrap_or(Listing::NO_END));
        let listed = list(&end);
        let after = end.into_inner();
        if after != before.unwrap_or(Listing::NO_END) {
            let mut ends = shard.lock();
            if ends.len() >= SHARD {
                ends.clear();
            }
            ends.insert(ino, after);
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn an_end_is_kept_until_a_listing_begins_anew() {
        let ends = ListingEnds::default();
        ends.with(Ino(7), |end| {
            assert_eq!(end.load(Ordering::Relaxed), Listing::NO_END);
            end.store(40, Ordering::Relaxed);
        });
        ends.with(Ino(7), |end| {
            assert_eq!(end.load(Ordering::Relaxed), 40);
            end.store(50, Ordering::Relaxed);
        });
        ends.with(Ino(7), |end| assert_eq!(end.load(Ordering::Relaxed), 50));
        ends.with(Ino(8), |end| {
            assert_eq!(end.load(Ordering::Relaxed), Listing::NO_END);
        });
    }

    #[test]
    fn however_many_directories_are_listed_what_is_kept_is_bounded() {
        let ends = ListingEnds::default();
        for number in 0..10 * (SHARDS * SHARD) as u64 {
            ends.with(Ino(number), |end| end.store(number, Ordering::Relaxed));
        }
        for shard in &ends.shards {
            assert!(shard.lock().len() <= SHARD);
        }
    }
}
