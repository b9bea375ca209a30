//! Deferred work of a shrinker: a pass that was stopped, or had less than a batch to do, leaves it
//! to the next one.
//!
//! *Invariants.* A pass takes all deferred work in one exchange, so concurrent passes do not do it
//! twice. It adds what it did not do in one exchange, so no pass loses the work of another. The sum
//! never exceeds the bound that was given last.

use crate::primitive::{AtomicU64, Ordering::Relaxed};

/// The deferred work of one shrinker, in parts of objects.
#[derive(Debug)]
pub(crate) struct Deferral(AtomicU64);

impl Deferral {
    /// Without deferred work.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes all of it.
    pub(crate) fn take(&self) -> u64 {
        // Relaxed, here and below: the number orders no other memory.
        self.0.swap(0, Relaxed)
    }

    /// Adds what a pass did not do, up to `most` in all; returns the sum.
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

    /// The deferred work.
    pub(crate) fn owed(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
