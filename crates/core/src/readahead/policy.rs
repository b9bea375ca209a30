//! When inodes are brought along, how many, and when that ends.
//!
//! Lustre's rules (`llite/statahead.c`: windows that double, an end below 80 % of hits or after misses in a row), but that
//! one name out of order ends no scan, and that the order need not be the listing's.

use std::time::Duration;

/// Milliseconds of a clock that only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millis(pub(crate) u64);

impl Millis {
    /// Now, by a clock that costs little.
    pub(crate) fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let millis = u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000;
        Self(seconds.saturating_mul(1000).saturating_add(millis))
    }

    pub(super) fn is_before(self, earlier: Self, by: Duration) -> bool {
        u128::from(self.0) < u128::from(earlier.0) + by.as_millis()
    }

    pub(super) fn after(self, time: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        )
    }
}

/// Inodes of one batch, at most. A batch of a volume reads about two leaves then, so that reading ahead in its tree sets in.
pub(crate) const BATCH: usize = 8192;
/// Inodes of the first window: a batch of so many takes as long as one.
pub(super) const FIRST: usize = 8;
/// Inodes of the first window in an order that took more to be seen.
pub(super) const FIRST_SORTED: usize = 64;
/// A directory of so many names is brought as a whole.
pub(super) const SMALL: u64 = 128;
/// Demand loads in a row that a listing's order takes to be seen, in a small directory any order, and another one.
pub(super) const IN_LISTING: u32 = 3;
pub(super) const IN_SMALL: u32 = 3;
pub(super) const IN_SORTED: u32 = 8;
/// They are looked for within this time in a small directory.
pub(super) const SOON: Duration = Duration::from_secs(1);
/// How many places behind the last one a load still follows it.
pub(super) const NEAR: u64 = 8;
/// Demand loads beside the window, in a row, that end a scan.
pub(super) const STRAYS: u32 = 8;
/// A scan of which nothing was heard for so long is over.
pub(super) const IDLE: Duration = Duration::from_secs(30);
/// How long a directory rests after a scan that was of no use, at first and at most.
const REST: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);
/// Inodes of a window that are looked at to tell whether it was used.
pub(super) const SAMPLE: usize = 64;

/// Is a window of which so many inodes were met, and so many were not, worth another? At 80 % it is.
pub(super) fn is_used(met: usize, unmet: usize) -> bool {
    met >= 4 * unmet
}

/// How a directory rests after scans that were of no use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    until: Millis,
    last: Duration,
}

impl Rest {
    /// Does it rest?
    pub(super) fn lasts(&self, now: Millis) -> bool {
        now < self.until
    }

    /// It begins, and lasts twice as long as the last one.
    pub(super) fn begin(&mut self, now: Millis) {
        self.last = (2 * self.last).clamp(REST, REST_MAX);
        self.until = now.after(self.last);
    }

    /// A scan was of use.
    pub(super) fn forgive(&mut self) {
        self.last = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_doubles_up_to_a_minute_until_a_scan_is_of_use() {
        let mut rest = Rest::default();
        assert!(!rest.lasts(Millis(0)));
        let mut now = Millis(5);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            rest.begin(now);
            let end = now.after(Duration::from_secs(seconds));
            assert!(rest.lasts(now) && rest.lasts(Millis(end.0 - 1)) && !rest.lasts(end));
            now = end;
        }
        rest.forgive();
        rest.begin(now);
        assert!(!rest.lasts(now.after(REST)));
    }

    #[test]
    fn four_of_five_are_enough() {
        for (met, unmet, used) in [(0, 0, true), (4, 1, true), (7, 2, false), (0, 1, false)] {
            assert_eq!(is_used(met, unmet), used, "{met} and {unmet}");
        }
    }
}
