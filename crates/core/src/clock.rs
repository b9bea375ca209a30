//! The file system's time: the kernel's coarse real-time clock, and the fine one where that can be noticed.
//!
//! A change takes the coarse time, which costs nothing and mostly is that of the change before: then nothing has to be
//! written. But a program that was told a file's times and asks again must see that it changed meanwhile (make, git, backups); so
//! the first change after that takes the fine time ([`fresh`]). From then on no change of anything takes an earlier
//! one: [`change`] gives the coarse time, and not one before the latest fine one. The idea is that of Linux 6.13's multigrain
//! timestamps.

use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::types::Time;

const NANOS: i64 = 1_000_000_000;

/// `relatime` moves an access time that is so old, in nanoseconds: a day.
pub(crate) const DAY: i64 = 24 * 60 * 60 * NANOS;

/// Who asks [`day_ago`] twice within this time, in nanoseconds, asks often.
const SOON: i64 = NANOS;

/// Answers of [`day_ago`] between two looks at the clock, at most.
const ANSWERS_MAX: u32 = 63;

/// A coarse time lags by less than this, in nanoseconds. A fine time that lies further ahead is from before the clock
/// was set back.
const LAG_MAX: i64 = NANOS / 50;

/// The latest time that [`fresh`] gave. On a line of its own: read with every change, written with few.
#[repr(align(128))]
struct Latest(AtomicI64);

static LATEST: Latest = Latest(AtomicI64::new(0));

/// The time of a change that nobody can tell from the one before.
#[inline]
pub(crate) fn change() -> Time {
    let (now, latest) = (now(), LATEST.0.load(Ordering::Relaxed));
    if (now.0..now.0.saturating_add(LAG_MAX)).contains(&latest) {
        Time(latest)
    } else {
        now
    }
}

/// The time of a change that is to differ from all before it: later than any that [`change`] and this gave.
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
    // Asked so often that numbers of two words would show.
    Time(
        time.tv_sec
            .saturating_mul(NANOS)
            .saturating_add(time.tv_nsec),
    )
}

thread_local! {
    // Without a destructor and with a constant start: so it is read by one load.
    static LATELY: Lately = const { Lately::never() };
}

/// What a thread remembers of the clock.
struct Lately {
    time: Cell<Time>,
    /// A day before.
    day_ago: Cell<Time>,
    /// Times that this will be the answer.
    left: Cell<u32>,
    /// Times that it was going to be when it was asked for.
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

    /// The day before the time remembered, if that will do once more.
    #[inline(always)]
    fn evicted_uses(&self) -> Option<Time> {
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

/// The time a day before this.
pub(crate) fn day_before(time: Time) -> Time {
    Time(time.0.saturating_sub(DAY))
}

/// The time a day ago, for what may be late by a while: mostly without a look at the clock.
///
/// A thread that has asked this often within a second is told what it was told before: about as many
/// times as it has asked in that second, and 63 times at most. Whoever asks seldom is told what is true.
#[inline(always)]
pub(crate) fn day_ago() -> Time {
    match LATELY.with(Lately::evicted_uses) {
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
    fn who_asks_often_is_told_what_was_true_within_a_second_as_often_as_he_asked_before() {
        let (lately, time) = (Lately::never(), Cell::new(Time(5 * SOON)));
        let told = || {
            let answer = lately.evicted_uses().unwrap_or_else(|| {
                lately.remember(time.get());
                day_before(time.get())
            });
            answer == day_before(time.get())
        };
        let pass = |by: i64| time.set(Time(time.get().0 + by));
        for _ in 0..5 {
            pass(SOON + 1);
            assert!(told(), "whoever asks seldom");
        }
        let mut in_vain = 0;
        for asked in 1..1000_u32 {
            pass(1);
            in_vain = if told() { 0 } else { in_vain + 1 };
            assert!(in_vain <= asked.min(ANSWERS_MAX), "{asked}");
        }
        // From now on he asks seldom.
        let lazytime = (0..1000).filter(|_| {
            pass(SOON + 1);
            !told()
        });
        assert!(lazytime.count() <= ANSWERS_MAX as usize);
        pass(SOON + 1);
        assert!(told());
        pass(-10 * SOON);
        assert!(told(), "a clock that was set back");
    }
}
