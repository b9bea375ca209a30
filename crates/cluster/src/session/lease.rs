//! How long answers hold without a beat.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A lease, which ends by the clock of this machine alone. The clock goes on while the machine
/// sleeps.
#[derive(Debug)]
pub(crate) struct Lease {
    length: Duration,
    /// Earlier than any question.
    begun: Instant,
    /// When it ends, in nanoseconds since the machine was started. 0: it has never begun.
    ///
    /// Release by the beat thread after it notified the core, Acquire by a reader: a reader that
    /// sees a lease finds what was notified before.
    end: AtomicU64,
}

/// A time, in nanoseconds since the machine was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BootTime(u64);

impl Lease {
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            length,
            begun: Instant::now(),
            end: AtomicU64::new(0),
        }
    }

    /// The present time.
    pub(crate) fn now() -> BootTime {
        let now = clock_gettime(ClockId::Boottime);
        let secs = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
        BootTime(secs.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    /// A beat that was sent at this time was answered, and taken in.
    pub(crate) fn renew(&self, sent: BootTime) {
        let length = u64::try_from(self.length.as_nanos()).unwrap_or(u64::MAX);
        let end = sent.0.saturating_add(length);
        self.end.fetch_max(end, Ordering::Release);
    }

    /// It ends now.
    pub(crate) fn end(&self) {
        self.end.store(0, Ordering::Release);
    }

    /// What is left of it.
    pub(crate) fn left(&self) -> Duration {
        let end = self.end.load(Ordering::Acquire);
        Duration::from_nanos(end.saturating_sub(Self::now().0))
    }

    /// When it ends, at the moment `now` of the clock that does not go on while the machine sleeps.
    /// A time long ago if it has ended.
    pub(crate) fn until(&self, now: Instant) -> Instant {
        match self.left() {
            Duration::ZERO => self.begun,
            left => now + left,
        }
    }

    /// Does it hold?
    pub(crate) fn holds(&self) -> bool {
        !self.left().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_runs_from_the_moment_when_the_beat_was_sent() {
        let lease = Lease::new(Duration::from_secs(100));
        assert!(!lease.holds());
        let BootTime(now) = Lease::now();
        lease.renew(BootTime(now - 90_000_000_000));
        assert!(lease.holds() && lease.left() <= Duration::from_secs(10));
        lease.renew(BootTime(now - 95_000_000_000));
        assert!(
            lease.left() > Duration::from_secs(5),
            "an older beat takes nothing"
        );
        let present = Instant::now();
        assert!(lease.until(present) > present);
        lease.end();
        assert!(!lease.holds());
        assert!(lease.until(present) < present);
    }
}
