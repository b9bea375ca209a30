//! How often something was done, and how long it took.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What was counted of one kind of work since the volume was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallied {
    /// How often it was done.
    pub count: u64,
    /// How long that took, of all threads together.
    pub time: Duration,
    /// Threads that are at it now.
    pub under_way: u64,
}

/// Counts one kind of work: something that takes so long that its counters' line does not matter.
#[derive(Debug, Default)]
pub(in crate::store) struct Tally {
    // Relaxed: counts for the eye, which order nothing.
    count: AtomicU64,
    nanoseconds: AtomicU64,
    under_way: AtomicU64,
}

impl Tally {
    /// The calling thread begins; it is done when what comes back is dropped.
    pub(in crate::store) fn begin(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Relaxed);
        UnderWay {
            tally: self,
            begun: Instant::now(),
        }
    }

    /// It was done once.
    pub(in crate::store) fn add(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }

    /// What was counted so far. What is under way counts when it ends.
    pub(in crate::store) fn so_far(&self) -> Tallied {
        Tallied {
            count: self.count.load(Relaxed),
            time: Duration::from_nanos(self.nanoseconds.load(Relaxed)),
            under_way: self.under_way.load(Relaxed),
        }
    }
}

/// What a volume counts.
#[derive(Debug, Default)]
pub(in crate::store) struct Tallies {
    /// Commits that were flushed.
    pub(in crate::store) commits: Tally,
    pub(in crate::store) checkpoints: Tally,
    /// Waits of threads that change something, until pages or changes that wait are fewer.
    pub(in crate::store) writer_waits: Tally,
}

/// Work under way.
#[derive(Debug)]
pub(in crate::store) struct UnderWay<'t> {
    tally: &'t Tally,
    begun: Instant,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.tally.add(self.begun.elapsed());
        self.tally.under_way.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_when_it_ends_and_is_under_way_until_then() {
        let tally = Tally::default();
        let (one, other) = (tally.begin(), tally.begin());
        assert_eq!((tally.so_far().count, tally.so_far().under_way), (0, 2));
        std::thread::sleep(Duration::from_millis(2));
        drop(one);
        let after = tally.so_far();
        assert_eq!((after.count, after.under_way), (1, 1));
        assert!(after.time >= Duration::from_millis(2));
        drop(other);
        tally.add(Duration::from_secs(5));
        let after = tally.so_far();
        assert_eq!((after.count, after.under_way), (3, 0));
        assert!(after.time >= Duration::from_millis(5004));
    }
}
