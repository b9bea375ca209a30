//! The rules: when read-ahead begins, its windows, and its end.
//!
//! They are Lustre's (`llite/statahead.c`: windows that double, an end below 80 % of hits or after
//! misses in a row), with two differences. One name out of order ends no scan, and the order need
//! not be that of listings.

use std::time::Duration;

/// Milliseconds of a monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millis(pub(crate) u64);

impl Millis {
    /// The current time of a cheap clock.
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

/// The most inodes of one batch. A batch of a volume then reads about two leaves, so that
/// read-ahead in its tree begins.
pub(crate) const BATCH: usize = 8192;
/// Inodes of the first window: a batch of this size takes as long as one inode.
pub(super) const FIRST: usize = 8;
/// Inodes of the first window in a sorted order, which takes more loads to detect.
pub(super) const FIRST_SORTED: usize = 64;
/// A directory with at most this number of names is loaded as a whole.
pub(super) const SMALL: u64 = 128;
/// Demand loads in a row that reveal the order of listings, any order in a small directory, and a
/// sorted order.
pub(super) const IN_LISTING: u32 = 3;
pub(super) const IN_SMALL: u32 = 3;
pub(super) const IN_SORTED: u32 = 8;
/// The time within which they must come in a small directory.
pub(super) const SOON: Duration = Duration::from_secs(1);
/// The largest distance of a load that still follows the last one.
pub(super) const NEAR: u64 = 8;
/// Demand loads in a row outside of the window that end a scan.
pub(super) const STRAYS: u32 = 8;
/// A scan without a demand load for this time is over.
pub(super) const IDLE: Duration = Duration::from_secs(30);
/// The pause of a directory after a useless scan, at first and at most.
const REST: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);
/// Inodes of a window that are sampled to tell whether it was used.
pub(super) const SAMPLE: usize = 64;

/// Was a window with these numbers of used and unused inodes useful? At least 80 % must be used.
pub(super) fn is_used(met: usize, unmet: usize) -> bool {
    met >= 4 * unmet
}

/// The pause of a directory after useless scans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    until: Millis,
    last: Duration,
}

impl Rest {
    /// Is there a pause now?
    pub(super) fn lasts(&self, now: Millis) -> bool {
        now < self.until
    }

    /// Begins a pause, twice as long as the last one.
    pub(super) fn begin(&mut self, now: Millis) {
        self.last = (2 * self.last).clamp(REST, REST_MAX);
        self.until = now.after(self.last);
    }

    /// A scan was useful.
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
