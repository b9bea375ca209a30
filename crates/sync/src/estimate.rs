use crate::padded::Padded;
use crate::per_core::PerCore;
use std::sync::atomic::{AtomicI64, Ordering};

/// How far each thread's slot may be from zero.
const SLACK: i64 = 32;

/// A counter that is read often: threads add to slots of their own, and move a slot's content to
/// the common sum when it reaches the slack. Reading it is one load of a line that is seldom
/// written.
///
/// The error is below 32 for each slot (see [`PerCore`]). The kernel has the same as
/// `percpu_counter`.
///
/// *Invariant.* A slot is written only by the thread that has its number. Threads without a slot
/// add to the sum.
#[derive(Debug, Default)]
pub struct Estimate {
    sum: Padded<AtomicI64>,
    slots: PerCore<AtomicI64>,
}

impl Estimate {
    /// Adds `n`, which may be negative.
    #[inline]
    pub fn add(&self, n: i64) {
        if n == 0 {
            return;
        }
        // Relaxed, here and below: the counter orders nothing else.
        let Some(slot) = self.slots.own() else {
            self.sum.fetch_add(n, Ordering::Relaxed);
            return;
        };
        let gathered = slot.load(Ordering::Relaxed).wrapping_add(n);
        if -SLACK < gathered && gathered < SLACK {
            slot.store(gathered, Ordering::Relaxed);
        } else {
            slot.store(0, Ordering::Relaxed);
            self.sum.fetch_add(gathered, Ordering::Relaxed);
        }
    }

    /// The sum, within the slack; 0 if it is negative.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        u64::try_from(self.sum.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn it_is_wrong_by_the_slack_of_each_slot_at_most() {
        let estimate = Estimate::default();
        thread::scope(|scope| {
            for thread in 0..40_i64 {
                let estimate = &estimate;
                scope.spawn(move || {
                    for round in 0..1000 {
                        estimate.add(3);
                        estimate.add(if round % 2 == thread % 2 { 5 } else { -4 });
                    }
                });
            }
        });
        let sum = 40 * (3000 + 2500 - 2000);
        let slots = estimate.slots.iter().count() as u64;
        assert!(estimate.get().abs_diff(sum) < slots * SLACK as u64);
    }

    #[test]
    fn much_at_once_is_seen_at_once() {
        let estimate = Estimate::default();
        estimate.add(SLACK);
        assert_eq!(estimate.get(), SLACK as u64);
        estimate.add(-2 * SLACK);
        assert_eq!(estimate.get(), 0);
    }
}
