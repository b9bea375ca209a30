//! Leaves that were seen empty, to be freed if they still are a while later.
//!
//! An empty leaf is often about to be filled: keys are dealt in batches, and an object may be gone
//! before its neighbour is inserted. So each core remembers the last few leaves that it has
//! emptied. It frees one only when others have taken its place. So at most a few empty leaves for
//! each core remain.
//!
//! *Locking.* A core's list has a lock, taken when another leaf than last time is found empty. It
//! is a leaf of the lock order.

use crate::per_core::PerCore;
use crate::primitive::{AtomicU64, Mutex, Ordering, SUSPECTS};
use std::mem;

/// No leaf: the first key of a leaf is even.
const NONE: u64 = u64::MAX;

/// The lists of all cores.
pub(super) struct Suspects {
    cores: PerCore<Core>,
}

struct Core {
    // The leaf noted last: the same one is emptied again and again while its keys are dealt.
    latest: AtomicU64,
    list: Mutex<List>,
}

struct List {
    leaves: [u64; SUSPECTS],
    oldest: usize,
}

impl Suspects {
    pub(super) fn new() -> Self {
        Self {
            cores: PerCore::new(|| Core {
                latest: AtomicU64::new(NONE),
                list: Mutex::new(List {
                    leaves: [NONE; SUSPECTS],
                    oldest: 0,
                }),
            }),
        }
    }

    /// Notes the leaf with this first key, if `is_empty`. Returns one that was noted long ago.
    #[inline]
    pub(super) fn note(&self, leaf: u64, is_empty: impl FnOnce() -> bool) -> Option<u64> {
        let core = self.cores.mine();
        // Relaxed: it saves a look at the leaf and the lock, and decides nothing.
        if core.latest.load(Ordering::Relaxed) == leaf || !is_empty() {
            return None;
        }
        core.latest.store(leaf, Ordering::Relaxed);
        core.list.lock().note(leaf)
    }
}

impl List {
    fn note(&mut self, leaf: u64) -> Option<u64> {
        if self.leaves.contains(&leaf) {
            return None;
        }
        let oldest = mem::replace(&mut self.leaves[self.oldest], leaf);
        self.oldest = (self.oldest + 1) % self.leaves.len();
        (oldest != NONE).then_some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_given_up_when_as_many_others_have_been_noted() {
        let mut list = List {
            leaves: [NONE; SUSPECTS],
            oldest: 0,
        };
        let leaves = || (0..SUSPECTS as u64).map(|leaf| leaf * 64);
        assert!(leaves().all(|leaf| list.note(leaf).is_none()));
        assert!(
            leaves().all(|leaf| list.note(leaf).is_none()),
            "noted already"
        );
        for (new, old) in (1000..).zip(leaves()) {
            assert_eq!(list.note(new), Some(old));
        }
    }
}
