//! The file system's time: the kernel's coarse real-time clock, and the fine one where a program
//! could notice.
//!
//! A change takes the coarse time, which is cheap and mostly equal to that of the change before:
//! then no time has to be written. But a program that has read a file's times must see on its next
//! stat(2) that the file changed meanwhile (make, git, backups). So the first change after the
//! times were read takes the fine time ([`fresh`]). From then on no change takes an earlier time:
//! [`change`] returns the later of the coarse time and the latest fine time. Linux 6.13's
//! multigrain timestamps work the same way.

use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::types::Time;

const NANOS: i64 = 1_000_000_000;

/// The age in nanoseconds at which `relatime` moves an access time: a day.
pub(crate) const DAY: i64 = 24 * 60 * 60 * NANOS;

/// A thread that calls [`day_ago`] twice within this time, in nanoseconds, calls it often.
const SOON: i64 = NANOS;

/// Calls of [`day_ago`] that are answered from memory between two reads of the clock, at most.
const ANSWERS_MAX: u32 = 63;

/// The coarse clock lags by less than this, in nanoseconds. A fine time further ahead was taken
/// before the clock was set back.
const LAG_MAX: i64 = NANOS / 50;

/// The latest time that [`fresh`] returned. On a cache line of its own: read with every change,
/// written rarely.
#[repr(align(128))]
struct Latest(AtomicI64);

static LATEST: Latest = Latest(AtomicI64::new(0));

/// The time of a change that need not differ from that of the change before.
#[inline]
pub(crate) fn change() -> Time {
    let (now, latest) = (now(), LATEST.0.load(Ordering::Relaxed));
    if (now.0..now.0.saturating_add(LAG_MAX)).contains(&latest) {
        Time(latest)
    } else {
        now
    }
}

/// The time of a change that must be later than all times that [`change`] and `fresh` returned.
#[cold]
pub(crate) fn fresh() -> Time {
    let time = clock_gettime(ClockId::Realtime);
    let now = time
        .tv_sec
        .saturating_mul(NANOS)
        .saturating_add(time.tv_nsec);
    let later = |latest: i64| {
        let is_near = (now..now.saturating_add(LAG_MAX)).contains(&latest);
        Some(if is_near { latest + 1 } else { now })
    };
    let latest = &LATEST.0;
    match latest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later) {
        Ok(latest) | Err(latest) => Time(later(latest).unwrap_or(now)),
    }
}

/// The present time, to the kernel's tick (1 to 4 ms).
pub(crate) fn now() -> Time {
    let time = clock_gettime(ClockId::RealtimeCoarse);
    // Called so often that 128-bit arithmetic would show.
    Time(
        time.tv_sec
            .saturating_mul(NANOS)
            .saturating_add(time.tv_nsec),
    )
}

thread_local! {
    // No destructor and a constant initializer: an access is one load.
    static LATELY: Lately = const { Lately::never() };
}

/// A thread's cached time.
struct Lately {
    time: Cell<Time>,
    /// `time` minus a day.
    day_ago: Cell<Time>,
    /// Remaining calls that are answered from the cache.
    left: Cell<u32>,
    /// Value of `left` after the last read of the clock.
    all: Cell<u32>,
}

impl Lately {
    const fn never() -> Self {
        Self {
            time: Cell::new(Time(0)),
            day_ago: Cell::new(Time(0)),
            left: Cell::new(0),
            all: Cell::new(0),
        }
    }

    /// The cached result, unless `left` is used up.
    #[inline(always)]
    fn cached(&self) -> Option<Time> {
        let (left, none) = self.left.get().overflowing_sub(1);
        self.left.set(left);
        (!none).then(|| self.day_ago.get())
    }

    fn remember(&self, now: Time) {
        let since = now.0.saturating_sub(self.time.get().0);
        let all = if (0..=SOON).contains(&since) {
            (2 * self.all.get() + 1).min(ANSWERS_MAX)
        } else {
            0
        };
        self.time.set(now);
        self.day_ago.set(day_before(now));
        self.left.set(all);
        self.all.set(all);
    }
}

/// The time minus a day.
pub(crate) fn day_before(time: Time) -> Time {
    Time(time.0.saturating_sub(DAY))
}

/// The time a day ago, for callers that tolerate a stale answer: mostly without reading the clock.
///
/// A thread that calls this often gets the cached answer, about as many times as it called within
/// the last second, and 63 times at most. A thread that calls it seldom gets the exact answer.
#[inline(always)]
pub(crate) fn day_ago() -> Time {
    match LATELY.with(Lately::cached) {
        Some(time) => time,
        None => ask(),
    }
}

#[cold]
#[inline(never)]
fn ask() -> Time {
    let now = now();
    LATELY.with(|lately| lately.remember(now));
    day_before(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_times_differ_and_no_change_goes_back_behind_them() {
        let mut last = change();
        for _ in 0..1000 {
            let time = fresh();
            assert!(time > last);
            last = time;
            assert!(change() >= last);
        }
        assert!((change().0 - now().0).abs() < LAG_MAX);
    }

    #[test]
    fn a_frequent_caller_gets_cached_answers_as_often_as_it_asked_within_a_second() {
        let (lately, time) = (Lately::never(), Cell::new(Time(5 * SOON)));
        let is_right = || {
            let answer = lately.cached().unwrap_or_else(|| {
                lately.remember(time.get());
                day_before(time.get())
            });
            answer == day_before(time.get())
        };
        let pass = |by: i64| time.set(Time(time.get().0 + by));
        for _ in 0..5 {
            pass(SOON + 1);
            assert!(is_right(), "the caller is infrequent");
        }
        let mut in_vain = 0;
        for asked in 1..1000_u32 {
            pass(1);
            in_vain = if is_right() { 0 } else { in_vain + 1 };
            assert!(in_vain <= asked.min(ANSWERS_MAX), "{asked}");
        }
        // From now on the thread calls seldom.
        let stale = (0..1000).filter(|_| {
            pass(SOON + 1);
            !is_right()
        });
        assert!(stale.count() <= ANSWERS_MAX as usize);
        pass(SOON + 1);
        assert!(is_right());
        pass(-10 * SOON);
        assert!(is_right(), "a clock that was set back");
    }
}
