//! What cores have borrowed from a balance, so that they can charge without meeting.
//!
//! *Invariant.* Every credit is part of what its balance holds. So taking from a credit passes no
//! limit that the balance keeps, and putting into one gives up nothing.
//!
//! The *batch* says how much is borrowed at a time; at 0 nobody takes or puts: the limit is near.
//! Credits that are there by then, and those that a thread puts which read the batch just before,
//! stay part of what the balance holds, out of reach until the next [`Credits::gather`].

use super::terms::Amounts;
use holdfast_sync::PerCore;
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A batch where no limit is in sight: the lock is met once in a very long while.
const BATCH_MAX: u64 = 1 << 32;
/// A smaller batch is not worth it.
const BATCH_MIN: u64 = 8;

/// Credits of all cores, for each thing that is counted; none at first.
#[derive(Debug, Default)]
pub(super) struct Credits {
    slots: OnceBox<PerCore<[AtomicU64; 2]>>,
    batches: [AtomicU64; 2],
}

// Relaxed throughout: the numbers guard no other memory, and each is exact by itself.
impl Credits {
    /// Are there credits?
    pub(super) fn exist(&self) -> bool {
        self.slots.get().is_some()
    }

    /// From now on there are. The caller holds the balances' lock, and sets batches next.
    pub(super) fn create(&self) {
        self.slots.get_or_init(Box::default);
    }

    /// Takes all of this out of the calling core's credits, or nothing.
    #[inline]
    pub(super) fn spend(&self, amounts: Amounts) -> bool {
        let Some(slots) = self.slots.get() else {
            return false;
        };
        let mine = slots.mine();
        for (thing, &amount) in amounts.iter().enumerate() {
            let far = || self.batches[thing].load(Relaxed) != 0;
            if amount > 0 && !(far() && take(&mine[thing], amount)) {
                for before in 0..thing {
                    mine[before].fetch_add(amounts[before], Relaxed);
                }
                return false;
            }
        }
        true
    }

    /// Puts `amount` into the calling core's credit, unless that would become too much.
    #[inline]
    pub(super) fn put(&self, thing: usize, amount: u64) -> bool {
        let Some(slots) = self.slots.get() else {
            return false;
        };
        let mine = &slots.mine()[thing];
        // Two batches at most, and none at all with a batch of 0.
        let most = 2 * self.batches[thing].load(Relaxed);
        let fits = mine.load(Relaxed).saturating_add(amount) <= most;
        if fits {
            mine.fetch_add(amount, Relaxed);
        }
        fits
    }

    /// All credits on this thing, taken back for the balance.
    pub(super) fn gather(&self, thing: usize) -> u64 {
        let slots = self.slots.get().into_iter().flat_map(PerCore::iter);
        slots
            .map(|slot| &slot[thing])
            .filter(|credit| credit.load(Relaxed) != 0)
            .map(|credit| credit.swap(0, Relaxed))
            .sum()
    }

    /// All credits on this thing, where they are.
    pub(super) fn sum(&self, thing: usize) -> u64 {
        let slots = self.slots.get().into_iter().flat_map(PerCore::iter);
        slots.map(|slot| slot[thing].load(Relaxed)).sum()
    }

    /// Fits the batch to the room that the balance has. The caller holds the balances' lock.
    pub(super) fn fit(&self, thing: usize, room: u64) {
        let Some(slots) = self.slots.get() else {
            return;
        };
        let old = self.batches[thing].load(Relaxed);
        let new = fitting(old, room / (4 * slots.iter().count() as u64));
        // Everybody reads this line: it is written only for a change.
        if new != old {
            self.batches[thing].store(new, Relaxed);
        }
    }

    /// Lends the calling core a batch out of this room, if it is short; returns how much.
    pub(super) fn lend(&self, thing: usize, room: u64) -> u64 {
        let batch = self.batches[thing].load(Relaxed);
        let Some(slots) = self.slots.get().filter(|_| batch != 0 && batch <= room) else {
            return 0;
        };
        let mine = &slots.mine()[thing];
        if mine.load(Relaxed) >= batch {
            return 0;
        }
        mine.fetch_add(batch, Relaxed);
        batch
    }

    /// Takes a batch back from the calling core, if it has that much; returns how much.
    pub(super) fn reclaim(&self, thing: usize) -> u64 {
        let batch = self.batches[thing].load(Relaxed);
        match self.slots.get() {
            Some(slots) if take(&slots.mine()[thing], batch) => batch,
            _ => 0,
        }
    }
}

fn take(credit: &AtomicU64, amount: u64) -> bool {
    credit
        .fetch_update(Relaxed, Relaxed, |there| there.checked_sub(amount))
        .is_ok()
}

/// The batch for a share of the room, changed only where that makes a difference.
fn fitting(old: u64, share: u64) -> u64 {
    let fits = share.min(BATCH_MAX);
    let least = if old == 0 { 4 * BATCH_MIN } else { BATCH_MIN };
    if fits < least {
        0
    } else if old != 0 && (fits / 2..=fits * 2).contains(&old) {
        old
    } else {
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::super::terms::{INODES, PAGES};
    use super::*;

    fn credits(room: u64) -> Credits {
        let credits = Credits::default();
        credits.create();
        for thing in [PAGES, INODES] {
            credits.fit(thing, room);
        }
        credits
    }

    #[test]
    fn spending_takes_all_or_nothing() {
        let credits = credits(u64::MAX);
        assert_eq!(credits.lend(PAGES, u64::MAX), BATCH_MAX);
        assert!(!credits.spend([1, 1]), "no inodes were lent");
        assert_eq!(credits.sum(PAGES), BATCH_MAX);
        assert_eq!(credits.lend(INODES, u64::MAX), BATCH_MAX);
        assert!(credits.spend([3, 1]));
        assert_eq!(credits.gather(PAGES), BATCH_MAX - 3);
        assert_eq!(credits.sum(INODES), BATCH_MAX - 1);
    }

    #[test]
    fn nobody_takes_or_puts_near_a_limit() {
        let credits = credits(1 << 20);
        let lent = credits.lend(PAGES, 1 << 20);
        assert!(lent > 0 && credits.put(PAGES, lent));
        assert!(!credits.put(PAGES, 1), "two batches are enough");
        assert_eq!(credits.reclaim(PAGES), lent);
        credits.fit(PAGES, 100);
        assert!(!credits.spend([1, 0]) && !credits.put(PAGES, 1));
        assert_eq!(credits.lend(PAGES, u64::MAX), 0);
        assert_eq!(credits.gather(PAGES), lent);
    }

    #[test]
    fn a_batch_changes_only_where_it_makes_a_difference() {
        assert_eq!(fitting(0, 1000), 1000);
        assert_eq!(fitting(1000, 500), 1000);
        assert_eq!(fitting(1000, 499), 499);
        assert_eq!(fitting(1000, 2002), 2002);
        assert_eq!(fitting(9, BATCH_MIN), 9);
        assert_eq!(fitting(9, BATCH_MIN - 1), 0);
        assert_eq!(fitting(0, 3 * BATCH_MIN), 0, "no flutter at the edge");
        assert_eq!(fitting(5, u64::MAX), BATCH_MAX);
    }
}
