//! Waiting for what the volume's thread does, without doing it.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// How often the pages that waited were taken by a commit, or the volume's thread was done with what it was asked for.
#[derive(Debug, Default)]
pub(super) struct Progress {
    steps: Mutex<u64>,
    made: Condvar,
}

impl Progress {
    /// The steps so far.
    pub(super) fn steps(&self) -> u64 {
        *self.steps.lock()
    }

    /// Makes a step, and tells who waits for it.
    pub(super) fn step(&self) {
        *self.steps.lock() += 1;
        self.made.notify_all();
    }

    /// Waits until there were other steps than these; `false`: there were none up to then.
    pub(super) fn wait_behind(&self, steps: u64, until: Instant) -> bool {
        let mut now = self.steps.lock();
        while *now == steps {
            if self.made.wait_until(&mut now, until).timed_out() {
                return *now != steps;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_step_ends_the_wait_for_it_and_time_does_without_one() {
        let progress = Progress::default();
        let soon = || Instant::now() + Duration::from_millis(20);
        let seen = progress.steps();
        assert!(!progress.wait_behind(seen, soon()));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let late = Instant::now() + Duration::from_secs(600);
                progress.wait_behind(seen, late)
            });
            progress.step();
            assert!(waiting.join().unwrap());
        });
        assert!(progress.wait_behind(seen, soon()), "it was made before");
        assert!(!progress.wait_behind(progress.steps(), soon()));
    }
}
