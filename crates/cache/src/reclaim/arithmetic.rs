//! How many objects a pass has to look at: the arithmetic of Linux before 4.16, which its trace records show.
//!
//! Of what a class holds a part is too much (*scanned* of *lru*, in pages). Of its objects, twice that part is to be looked at, where a
//! lost one costs two seeks; and what earlier passes left. The numbers are those of the class itself: a target that follows what another cache scans
//! leaves those alone that have little of it (D. Chinner on J. Bacik's series of October 2016).
//!
//! Two things differ. The remainder of the division is kept, so that a small cache is owed its part as well, by and by. And what a small pass may
//! do at once (half of the objects there) is a batch at least, or all: a cache of fewer than two batches would never be scanned.

/// Bits for parts of an object.
const FRACTION: u32 = 20;

/// So much of so much is too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Pages that are wanted.
    pub scanned: u64,
    /// Pages that are held.
    pub lru: u64,
}

/// Objects to be looked at, with the part of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Debt(u64);

impl Debt {
    /// Whole ones, as far as they can be counted.
    pub(super) fn of(objects: u64) -> Self {
        Self(objects.min(u64::MAX >> FRACTION) << FRACTION)
    }

    /// As it is kept: see [`parts`](Self::parts).
    pub(super) fn from_parts(parts: u64) -> Self {
        Self(parts)
    }

    pub(super) fn parts(self) -> u64 {
        self.0
    }

    /// Whole ones.
    pub(super) fn objects(self) -> u64 {
        self.0 >> FRACTION
    }

    /// This, when so many objects were looked at.
    pub(super) fn less(self, objects: u64) -> Self {
        Self(self.0.saturating_sub(Self::of(objects).0))
    }
}

/// What a pass has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Objects that this pressure adds.
    pub(super) delta: u64,
    /// With what was deferred, within what one pass may do.
    pub(super) total: Debt,
}

/// The share of a class of so many `items`, each of which costs so many `seeks` when it is wanted again.
pub(super) fn share(
    deferred: Debt,
    pressure: Pressure,
    (seeks, batch): (u32, u64),
    items: u64,
) -> Share {
    let each = 4 * u128::from(pressure.scanned) / u128::from(seeks.max(1));
    let objects = each.saturating_mul(u128::from(items));
    // What does not fit is more than twice the objects by far.
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

    #[test]
    fn parts_of_objects_add_up() {
        // A hundredth of 50, twice.
        let pressure = Pressure {
            scanned: 1,
            lru: 99,
        };
        let mut owed = Debt::default();
        let mut sum = 0;
        for _ in 0..10 {
            let share = share(owed, pressure, (4, 128), 50);
            sum += share.delta;
            owed = share.total;
        }
        assert!((4..=5).contains(&sum), "{sum}");
        assert_eq!(owed.objects(), sum);
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
