//! When a commit is made that nobody asks for.
//!
//! What was changed is durable a certain time later, at most. But of a file that is written here and there, a commit just
//! when that begins would take the first few blocks alone: each would get a place among strangers, for ever, where a
//! moment later there are so many that all lie in pieces of the file. So a commit comes after four fifths of the
//! time; if pages wait of which there were none a fifth before, it leaves them the rest.

use std::time::{Duration, Instant};

const PARTS: u32 = 5;

/// The time until the next commit.
#[derive(Debug)]
pub(super) struct Timer {
    every: Duration,
    due: Instant,
    next: Next,
}

/// What is done when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Look,
    /// A commit, unless pages wait of which there were none when that was looked at.
    Judge {
        waited: bool,
    },
    Commit,
}

impl Timer {
    /// A commit was made now, or there is nothing yet.
    pub(super) fn new(every: Duration, now: Instant) -> Self {
        Self {
            every,
            due: now + every / PARTS * 3,
            next: Next::Look,
        }
    }

    /// When to look again.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Says at a moment whether it is time for a commit. Do pages wait to be written?
    pub(super) fn is_time(&mut self, now: Instant, waiting: bool) -> bool {
        if now < self.due {
            return false;
        }
        self.next = match self.next {
            Next::Look => Next::Judge { waited: waiting },
            Next::Judge { waited: false } if waiting => Next::Commit,
            Next::Judge { .. } | Next::Commit => return true,
        };
        self.due += self.every / PARTS;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_millis(500);

    /// After how many milliseconds a commit is made, if pages wait from some on.
    fn committed(pages_since: u64) -> u64 {
        let start = Instant::now();
        let mut timer = Timer::new(EVERY, start);
        let times = (0..=1000).map(|at| (at, start + Duration::from_millis(at)));
        let mut times = times.filter(|(at, now)| timer.is_time(*now, *at >= pages_since));
        times.next().expect("there is one").0
    }

    #[test]
    fn a_commit_comes_in_time_and_leaves_pages_that_have_just_begun_to_wait_a_while() {
        assert_eq!(committed(u64::MAX), 400, "without pages");
        for since in [0, 100, 300] {
            assert_eq!(committed(since), 400, "pages since {since} ms");
        }
        for since in [301, 350, 400] {
            assert_eq!(committed(since), 500, "pages since {since} ms");
        }
        assert_eq!(committed(401), 400, "they came behind it");
    }

    #[test]
    fn it_asks_to_be_looked_at_at_these_moments_only() {
        let start = Instant::now();
        let mut timer = Timer::new(EVERY, start);
        for after in [300, 400, 500] {
            assert_eq!(timer.due(), start + Duration::from_millis(after));
            assert_eq!(timer.is_time(timer.due(), after > 300), after == 500);
        }
    }
}
