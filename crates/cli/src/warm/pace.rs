//! How many files are asked for at a time.
//!
//! It begins with few and doubles while that brings a tenth more a second and an answer takes less than twice the
//! shortest time seen; it goes back by a quarter where answers take longer. So a slow host gets as many as it serves
//! side by side, and a local tree few.

use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// At first.
const FIRST: usize = 4;
/// How often it is looked at.
const WINDOW: Duration = Duration::from_millis(100);
/// Answers without which nothing is concluded.
const FEW: u64 = 16;

/// Counted since the last look.
struct Window {
    begun: Instant,
    /// Answers a second in the one before.
    rate: f64,
    /// The least mean time of an answer in any, in nanoseconds.
    least: f64,
}

/// Shared by all workers.
pub(super) struct Pace {
    allowed: AtomicUsize,
    most: usize,
    /// The most that was allowed so far.
    pub(super) peak: AtomicUsize,
    answers: AtomicU64,
    nanos: AtomicU64,
    window: Mutex<Window>,
    /// When the next may be asked for, in nanoseconds since the begin, if there is a limit.
    next: Mutex<Duration>,
    spacing: Duration,
    begun: Instant,
}

impl Pace {
    /// `rate`: most files a second.
    pub(super) fn new(most: usize, rate: Option<u32>) -> Self {
        let allowed = FIRST.min(most);
        Self {
            allowed: AtomicUsize::new(allowed),
            most,
            peak: AtomicUsize::new(allowed),
            answers: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            window: Mutex::new(Window {
                begun: Instant::now(),
                rate: 0.0,
                least: f64::MAX,
            }),
            next: Mutex::new(Duration::ZERO),
            spacing: rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate),
            begun: Instant::now(),
        }
    }

    /// Is this worker needed?
    pub(super) fn needs(&self, worker: usize) -> bool {
        worker < self.allowed.load(Relaxed)
    }

    /// Waits for its turn, where there is a limit.
    pub(super) fn wait(&self) {
        if self.spacing.is_zero() {
            return;
        }
        let turn = {
            let mut next = self.next.lock();
            let turn = (*next).max(self.begun.elapsed());
            *next = turn + self.spacing;
            turn
        };
        thread::sleep(turn.saturating_sub(self.begun.elapsed()));
    }

    /// An answer came after so long.
    pub(super) fn answered(&self, took: Duration) {
        self.answers.fetch_add(1, Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Relaxed);
        if let Some(mut window) = self.window.try_lock() {
            let passed = window.begun.elapsed();
            if passed >= WINDOW && self.answers.load(Relaxed) >= FEW {
                let answers = self.answers.swap(0, Relaxed) as f64;
                let mean = self.nanos.swap(0, Relaxed) as f64 / answers;
                self.adapt(&mut window, answers / passed.as_secs_f64(), mean);
                window.begun = Instant::now();
            }
        }
    }

    fn adapt(&self, window: &mut Window, rate: f64, mean: f64) {
        let now = self.allowed.load(Relaxed);
        window.least = window.least.min(mean);
        let next = if mean > 2.0 * window.least {
            now - now / 4
        } else if rate > 1.1 * window.rate {
            (2 * now).min(self.most)
        } else {
            now
        };
        window.rate = rate;
        let next = next.max(1);
        self.peak.fetch_max(next, Relaxed);
        self.allowed.store(next, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it comes to on a host that serves so many side by side, an answer in 5 ms.
    fn settles_at(side_by_side: f64, most: usize) -> usize {
        let pace = Pace::new(most, None);
        for _ in 0..20 {
            let asked = pace.allowed.load(Relaxed) as f64;
            let mean = 5e6 * (asked / side_by_side).max(1.0);
            pace.adapt(&mut pace.window.lock(), asked * 1e9 / mean, mean);
        }
        pace.allowed.load(Relaxed)
    }

    #[test]
    fn it_asks_for_as_many_as_are_served_side_by_side_and_for_no_more_than_it_may() {
        assert_eq!(settles_at(1e9, 32), 32);
        let few = settles_at(8.0, 64);
        assert!((8..=16).contains(&few), "{few}");
        assert!(settles_at(2.0, 64) <= 8);
        assert_eq!(settles_at(1e9, 1), 1);
    }

    #[test]
    fn a_limit_of_files_a_second_is_kept() {
        let pace = Pace::new(4, Some(1000));
        let begun = Instant::now();
        (0..50).for_each(|_| pace.wait());
        assert!(begun.elapsed() >= Duration::from_millis(49));
    }
}
