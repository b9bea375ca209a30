//! The limit of requests a second.

use parking_lot::Mutex;
use std::{
    thread,
    time::{Duration, Instant},
};

/// Shared by all workers.
pub(super) struct Pace {
    /// When the next request may start, since `begun`.
    next: Mutex<Duration>,
    /// Zero without a limit.
    spacing: Duration,
    begun: Instant,
}

impl Pace {
    /// `rate`: most files a second.
    pub(super) fn new(rate: Option<u32>) -> Self {
        Self {
            next: Mutex::new(Duration::ZERO),
            spacing: rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate),
            begun: Instant::now(),
        }
    }

    /// Waits as the rate limit demands.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_files_a_second_is_kept() {
        let pace = Pace::new(Some(1000));
        let begun = Instant::now();
        (0..50).for_each(|_| pace.wait());
        assert!(begun.elapsed() >= Duration::from_millis(49));
    }
}
