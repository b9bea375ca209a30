//! Counts and durations of commits, checkpoints and waits.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Counters of one kind of work since the open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCounts {
    /// Completed runs, or requests to the device.
    pub count: u64,
    /// Bytes requested from the device.
    pub bytes: u64,
    /// Their total duration, for a batch of requests once.
    pub time: Duration,
    /// Threads at it now.
    pub under_way: u64,
}

/// Counts one kind of work that is slow enough for shared counters.
#[derive(Debug, Default)]
pub(super) struct Counter {
    // Relaxed: statistics, which order nothing.
    count: AtomicU64,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
    under_way: AtomicU64,
}

impl Counter {
    /// Begins a run that ends when the guard is dropped.
    pub(super) fn begin(&self) -> UnderWay<'_> {
        self.begin_requests(1, 0)
    }

    /// Begins requests for so many bytes, including failed ones.
    pub(super) fn begin_requests(&self, count: usize, bytes: usize) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
        UnderWay {
            counter: self,
            count: count as u64,
            begun: Instant::now(),
        }
    }

    /// Counts one run.
    pub(super) fn add(&self, time: Duration) {
        self.add_requests(1, time);
    }

    fn add_requests(&self, count: u64, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(count, Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }

    /// The counters. A run counts when it ends.
    pub(super) fn so_far(&self) -> WorkCounts {
        WorkCounts {
            count: self.count.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            time: Duration::from_nanos(self.nanoseconds.load(Relaxed)),
            under_way: self.under_way.load(Relaxed),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Flushed commits.
    pub(super) commits: Counter,
    pub(super) checkpoints: Counter,
    /// Waits of writers for throttling, checkpoints or space.
    pub(super) writer_waits: Counter,
}

/// A run in progress.
#[derive(Debug)]
pub(super) struct UnderWay<'t> {
    counter: &'t Counter,
    count: u64,
    begun: Instant,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.counter.add_requests(self.count, self.begun.elapsed());
        self.counter.under_way.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_when_it_ends_and_is_under_way_until_then() {
        let counter = Counter::default();
        let (one, other) = (counter.begin(), counter.begin());
        assert_eq!((counter.so_far().count, counter.so_far().under_way), (0, 2));
        std::thread::sleep(Duration::from_millis(2));
        drop(one);
        let after = counter.so_far();
        assert_eq!((after.count, after.under_way), (1, 1));
        assert!(after.time >= Duration::from_millis(2));
        drop(other);
        counter.add(Duration::from_secs(5));
        let after = counter.so_far();
        assert_eq!((after.count, after.under_way), (3, 0));
        assert!(after.time >= Duration::from_millis(5004));
    }
}
