use crate::per_core::PerCore;
use std::sync::atomic::{AtomicI64, Ordering};

/// A counter that threads change without contention: each adds to its own slot.
///
/// A thread may subtract what another added, so a single slot may be negative. Only the sum means
/// something, and only as far as the additions around it are complete.
///
/// *Invariant.* A slot of `owned` is written only by the thread that has its number, so an addition
/// needs no atomic exchange. Threads without a slot add to `shared`.
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
        // Relaxed: the counter orders nothing else. No addition is lost, because only this thread
        // writes the slot, and a thread's number passes to the next thread under a lock.
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

    /// The slot of this thread: what it and earlier or later users of the slot have added. Reading
    /// it touches no cache line of another thread's slot.
    #[inline]
    #[must_use]
    pub fn own(&self) -> i64 {
        let slot = self.owned.own().unwrap_or_else(|| self.shared.mine());
        slot.load(Ordering::Relaxed)
    }

    /// The sum of all slots.
    ///
    /// Additions that other threads make during the call may be seen or not. So the sum may never
    /// have been true at one moment, and may even be negative for an instant.
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
