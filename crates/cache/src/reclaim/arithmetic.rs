//! How many objects a pass has to scan: the arithmetic of Linux before 4.16, as its trace records
//! show it.
//!
//! A part of what a class holds is excess (*scanned* of *lru*, in pages). Twice that part of its
//! objects is to be scanned, if a lost object costs two seeks, and what earlier passes deferred.
//! The numbers are those of the class itself. A target that followed the scans of another cache
//! would spare the classes that hold little of that cache (D. Chinner on J. Bacik's series of
//! October 2016).
//!
//! Two things differ. The remainder of the division is kept, so that a small cache is scanned
//! eventually. And a small pass may do at least a batch at once, or all objects, not only half of
//! them. Otherwise a cache of fewer than two batches would never be scanned.

/// Bits of the fraction of an object.
const FRACTION: u32 = 20;

/// The excess as a part of a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Pages that are to be freed.
    pub scanned: u64,
    /// Pages that are held.
    pub lru: u64,
}

/// A number of objects to be scanned, with a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Debt(u64);

impl Debt {
    /// A whole number of objects, saturating.
    pub(super) fn of(objects: u64) -> Self {
        Self(objects.min(u64::MAX >> FRACTION) << FRACTION)
    }

    /// From the form that [`parts`](Self::parts) returns.
    pub(super) fn from_parts(parts: u64) -> Self {
        Self(parts)
    }

    pub(super) fn parts(self) -> u64 {
        self.0
    }

    /// The whole objects.
    pub(super) fn objects(self) -> u64 {
        self.0 >> FRACTION
    }

    /// This, after `objects` were scanned.
    pub(super) fn less(self, objects: u64) -> Self {
        Self(self.0.saturating_sub(Self::of(objects).0))
    }
}

/// The work of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Objects to scan because of the pressure.
    pub(super) delta: u64,
    /// That and the deferred objects, bounded by what one pass may do.
    pub(super) total: Debt,
}

/// The share of a class with `items` objects that cost `seeks` each to bring back.
pub(super) fn share(
    deferred: Debt,
    pressure: Pressure,
    (seeks, batch): (u32, u64),
    items: u64,
) -> Share {
    let each = 4 * u128::from(pressure.scanned) / u128::from(seeks.max(1));
    let objects = each.saturating_mul(u128::from(items));
    // If it overflows it is far more than twice the objects.
    let parts = match objects.leading_zeros() >= FRACTION {
        true => (objects << FRACTION) / (u128::from(pressure.lru) + 1),
        false => u128::MAX,
    };
    let parts = u64::try_from(parts).unwrap_or(u64::MAX);
    let total = Debt(deferred.0.saturating_add(parts));
    let delta = total.objects() - deferred.objects();
    let little = (items / 2).max(batch.min(items));
    let most = match delta < items / 4 {
        true => little,
        false => items.saturating_mul(2),
    };
    Share {
        delta,
        total: total.min(Debt::of(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(deferred: u64, scanned: u64, lru: u64, items: u64) -> (u64, u64) {
        let pressure = Pressure { scanned, lru };
        let Share { delta, total } = share(Debt::of(deferred), pressure, (2, 1024), items);
        (delta, total.objects())
    }

    #[test]
    fn the_four_records_of_the_source_come_out_to_the_digit() {
        assert_eq!(of(882_936, 32, 6236, 2_416_122), (24_792, 907_728));
        assert_eq!(of(64_064, 32, 6697, 2_236_078), (21_365, 85_429));
        assert_eq!(of(1_006, 203, 251_067, 1_787_431), (2_890, 3_896));
        assert_eq!(of(459, 1585, 249_194, 1_784_345), (22_698, 23_157));
    }

    #[test]
    fn a_small_pass_does_half_at_most_but_a_batch_and_a_large_one_twice_all() {
        assert_eq!(of(1_000_000, 1, 10_000, 100_000), (19, 50_000));
        assert_eq!(of(1_000_000, 1, 10_000, 1_500), (0, 1024));
        assert_eq!(of(1_000_000, 1, 10_000, 50), (0, 50));
        assert_eq!(of(1_000_000, 9_000, 10_000, 100_000), (179_982, 200_000));
        assert_eq!(of(0, u64::MAX, 0, 1 << 40).1, 2 << 40);
        assert_eq!(of(0, 0, 0, 0), (0, 0));
    }

    proptest! {
        #[test]
        fn nothing_overflows_and_no_pass_has_more_than_twice_all_to_do(
            deferred: u64, scanned: u64, lru: u64, items: u64, seeks: u32, batch: u64
        ) {
            let items = items >> 22;
            let pressure = Pressure { scanned, lru };
            let share = share(Debt::from_parts(deferred), pressure, (seeks, batch), items);
            prop_assert!(share.total.objects() <= 2 * items);
            prop_assert!(share.total.less(share.total.objects()).objects() == 0);
        }
    }
}
