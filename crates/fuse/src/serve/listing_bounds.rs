//! Where listings end in directories that the kernel opens without a request.
//!
//! A listing ends at the names that existed when it began: otherwise a program that adds or renames
//! while it lists might never finish. Without an open directory the end is stored per inode, and
//! the listing that began last sets it. An earlier listing under way may then show names created
//! meanwhile, which POSIX allows.
//!
//! # Invariants
//! The table is bounded. A full shard is cleared: its listings under way then end where their
//! directory ends. That happens once in [`SHARD`] directories with a new listing.
//!
//! # Locking
//! Shards are leaves, not locked while names are read.

use holdfast_core::{Listing, types::Ino};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::atomic::AtomicU64};

const SHARDS: usize = 16;
/// Directories in a shard, at most.
const SHARD: usize = 1024;

/// Ends of recent listings.
#[derive(Default)]
pub(super) struct ListingBounds {
    /// Each guards the ends of some directories.
    shards: [Mutex<HashMap<Ino, u64>>; SHARDS],
}

impl ListingBounds {
    /// Runs `list` with the end of this directory's listing, and stores the end that it leaves.
    pub(super) fn with<T>(&self, ino: Ino, list: impl FnOnce(&AtomicU64) -> T) -> T {
        let shard = &self.shards[ino.0 as usize % SHARDS];
        let before = shard.lock().get(&ino).copied();
        let end = AtomicU64::new(before.unwrap_or(Listing::NO_END));
        let listed = list(&end);
        let after = end.into_inner();
        if after != before.unwrap_or(Listing::NO_END) {
            let mut bounds = shard.lock();
            if bounds.len() >= SHARD {
                bounds.clear();
            }
            bounds.insert(ino, after);
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
        let bounds = ListingBounds::default();
        bounds.with(Ino(7), |end| {
            assert_eq!(end.load(Ordering::Relaxed), Listing::NO_END);
            end.store(40, Ordering::Relaxed);
        });
        bounds.with(Ino(7), |end| {
            assert_eq!(end.load(Ordering::Relaxed), 40);
            end.store(50, Ordering::Relaxed);
        });
        bounds.with(Ino(7), |end| assert_eq!(end.load(Ordering::Relaxed), 50));
        bounds.with(Ino(8), |end| {
            assert_eq!(end.load(Ordering::Relaxed), Listing::NO_END);
        });
    }

    #[test]
    fn however_many_directories_are_listed_what_is_kept_is_bounded() {
        let bounds = ListingBounds::default();
        for number in 0..10 * (SHARDS * SHARD) as u64 {
            bounds.with(Ino(number), |end| end.store(number, Ordering::Relaxed));
        }
        for shard in &bounds.shards {
            assert!(shard.lock().len() <= SHARD);
        }
    }
}
