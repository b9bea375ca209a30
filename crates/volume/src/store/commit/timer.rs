//! When a commit is made that nobody asks for.
//!
//! What was changed is durable a certain time later, at most. But of a file that is written here and there, a commit just
//! when that begins would take the first few blocks alone: each would get a place among strangers, for ever, where a
//! moment later there are so many that all lie in pieces of the file. So a commit comes after four fifths of the
//! time; if pages wait of which there were none a fifth before, it leaves them the rest.

use std::time::{Duration, Instant};

const PARTS: u32 = 5;

/// After so long what was changed is on its way to the device's cache: a second at most until it is there, of which
/// writing takes a part.
const WRITE_EVERY: Duration = Duration::from_millis(500);
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);

/// After how long changes outlive what, by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promptness {
    /// They are with the host, at most so long after they were made: they outlive the process.
    pub written: Option<Duration>,
    /// And durable: they outlive a power cut.
    pub flushed: Option<Duration>,
}

impl Promptness {
    /// Of a volume that commits so often. `writes`: does what is only written outlive the process?
    pub(in crate::store) fn of(every: Option<Duration>, writes: bool) -> Self {
        let written = every.map(|every| match writes {
            true => every.min(WRITTEN_WITHIN),
            false => every,
        });
        Self {
            written,
            flushed: every,
        }
    }
}

/// How often everything is written between two commits, if that is of any use.
pub(in crate::store) fn writes_every(every: Option<Duration>, writes: bool) -> Option<Duration> {
    let later = every.filter(|every| writes && *every > WRITE_EVERY);
    later.map(|_| WRITE_EVERY)
}

/// The time until the next commit, or until everything is written.
#[derive(Debug)]
pub(in crate::store) struct Timer {
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
    pub(in crate::store) fn new(every: Duration, now: Instant) -> Self {
        Self {
            every,
            due: now + every / PARTS * 3,
            next: Next::Look,
        }
    }

    /// When to look again.
    pub(in crate::store) fn due(&self) -> Instant {
        self.due
    }

    /// Says at a moment whether it is time for a commit. Do pages wait to be written?
    pub(in crate::store) fn is_time(&mut self, now: Instant, waiting: bool) -> bool {
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
    fn what_changes_is_written_within_a_second_where_a_commit_comes_later() {
        let second = Duration::from_secs(1);
        assert_eq!(writes_every(Some(5 * second), true), Some(WRITE_EVERY));
        let none = [
            (Some(5 * second), false),
            (Some(second / 2), true),
            (None, true),
        ];
        assert!(
            none.into_iter()
                .all(|(every, writes)| writes_every(every, writes).is_none())
        );
        let promptness = Promptness::of(Some(5 * second), true);
        assert!(
            promptness
                .written
                .is_some_and(|within| within > WRITE_EVERY)
        );
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
