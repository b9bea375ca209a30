//! Work of a shrinker that is owed: passes that were stopped, or had less to do than a batch, leave it to the next one.
//!
//! *Invariants.* A pass takes all that is owed in one exchange, so that passes beside each other do not both do it, and adds
//! what it did not do in one exchange, so that neither loses what the other owes. What stands here is never more than the bound that was
//! given last.

use crate::primitive::{AtomicU64, Ordering::Relaxed};

/// What one shrinker owes, in parts of objects.
#[derive(Debug)]
pub(crate) struct Deferral(AtomicU64);

impl Deferral {
    /// Nothing is owed.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes all of it: nothing is owed then.
    pub(crate) fn take(&self) -> u64 {
        // Relaxed, here and below: it is a number, and tells nothing of any other memory.
        self.0.swap(0, Relaxed)
    }

    /// Adds what a pass did not do, up to so much in all; says how much is owed then.
    pub(crate) fn give_back(&self, rest: u64, most: u64) -> u64 {
        if rest == 0 {
            return self.owed();
        }
        let add = |owed: u64| owed.saturating_add(rest).min(most.max(owed));
        let mut owed = self.0.load(Relaxed);
        loop {
            match (self.0).compare_exchange(owed, add(owed), Relaxed, Relaxed) {
                Ok(_) => return add(owed),
                Err(now) => owed = now,
            }
        }
    }

    /// What is owed now.
    pub(crate) fn owed(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
