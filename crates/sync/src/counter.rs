use crate::per_core::PerCore;
use std::sync::atomic::{AtomicI64, Ordering};

/// A counter that threads change without meeting: each adds to its own slot.
///
/// A thread may well subtract what another added, so single slots go below zero; only the sum
/// means something, and only as exactly as the additions around it have settled.
///
/// *Invariant.* A slot of `owned` is written by one thread at a time, the one that has its number:
/// so an addition needs no atomic exchange. Threads beyond the slots add to `shared`.
#[derive(Debug, Default)]
pub struct ShardedCounter {
    owned: PerCore<AtomicI64>,
    shared: PerCore<AtomicI64>,
}

impl ShardedCounter {
    /// A counter at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `n`, which may be negative.
    #[inline]
    pub fn add(&self, n: i64) {
        // Relaxed: the counter orders nothing else. Nothing is lost: nobody else writes the slot,
        // and a thread's number passes to the next under a lock.
        match self.owned.own() {
            Some(slot) => {
                let sum = slot.load(Ordering::Relaxed).wrapping_add(n);
                slot.store(sum, Ordering::Relaxed);
            }
            None => {
                self.shared.mine().fetch_add(n, Ordering::Relaxed);
            }
        }
    }

    /// What the threads that share this one's slot have added so far: it changes as they go on, and
    /// looking at it meets nobody else's line.
    #[inline]
    #[must_use]
    pub fn own(&self) -> i64 {
        let slot = self.owned.own().unwrap_or_else(|| self.shared.mine());
        slot.load(Ordering::Relaxed)
    }

    /// The sum of all slots.
    ///
    /// Additions made by other threads during the call may be seen or not, so the sum may never
    /// have been true at one moment (it can even be negative for an instant).
    #[must_use]
    pub fn sum(&self) -> i64 {
        self.owned
            .iter()
            .chain(self.shared.iter())
            .map(|slot| slot.load(Ordering::Relaxed))
            .fold(0, i64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn no_addition_is_lost() {
        let counter = ShardedCounter::new();
        thread::scope(|scope| {
            for thread in 0..40_i64 {
                let counter = &counter;
                scope.spawn(move || {
                    for _ in 0..1000 {
                        counter.add(thread);
                        counter.add(-1);
                    }
                });
            }
        });
        assert_eq!(counter.sum(), 1000 * (0..40).sum::<i64>() - 40_000);
    }
}
