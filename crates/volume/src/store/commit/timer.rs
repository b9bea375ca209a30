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
const WRITE_EVERY: Duration = Duration::from_millis(800);
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);

/// The timers of both: what was changed is written soon, so that it outlives the process, and committed later, so that it
/// outlives a crash of the host.
#[derive(Debug)]
pub(in crate::store) struct Timers {
    commit: Option<Timer>,
    /// Only where a commit comes later.
    write: Option<Timer>,
}

/// What it is time for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Due {
    /// Everything is written.
    Write,
    /// And made durable.
    Commit,
}

/// After how long changes outlive what, by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promptness {
    /// They are with the host, at most so long after they were made: they outlive the process.
    pub written: Option<Duration>,
    /// And durable: they outlive a power cut.
    pub flushed: Option<Duration>,
}

impl Promptness {
    /// As [`Timers`] with these have it.
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

impl Timers {
    /// A commit was begun now, or there is nothing yet. `writes`: does what is only written outlive the process?
    pub(in crate::store) fn new(every: Option<Duration>, writes: bool, now: Instant) -> Self {
        let write = every.filter(|every| writes && *every > WRITE_EVERY);
        Self {
            commit: every.map(|every| Timer::new(every, now)),
            write: write.map(|_| Timer::new(WRITE_EVERY, now)),
        }
    }

    /// When to look again.
    pub(in crate::store) fn due(&self) -> Option<Instant> {
        let timers = [&self.commit, &self.write].into_iter().flatten();
        timers.map(Timer::due).min()
    }

    /// What it is time for at a moment. Do pages wait to be written?
    pub(in crate::store) fn what_is_due(&mut self, now: Instant, waiting: bool) -> Option<Due> {
        let is_time = |timer: &mut Option<Timer>| {
            timer
                .as_mut()
                .is_some_and(|timer| timer.is_time(now, waiting))
        };
        let commit = is_time(&mut self.commit);
        let write = is_time(&mut self.write);
        match (commit, write) {
            (true, _) => Some(Due::Commit),
            (false, true) => Some(Due::Write),
            (false, false) => None,
        }
    }

    /// Everything up to this moment was written.
    pub(in crate::store) fn wrote(&mut self, now: Instant) {
        if self.write.is_some() {
            self.write = Some(Timer::new(WRITE_EVERY, now));
        }
    }
}

/// The time until the next commit.
#[derive(Debug)]
struct Timer {
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
    fn new(every: Duration, now: Instant) -> Self {
        Self {
            every,
            due: now + every / PARTS * 3,
            next: Next::Look,
        }
    }

    /// When to look again.
    fn due(&self) -> Instant {
        self.due
    }

    /// Says at a moment whether it is time for a commit. Do pages wait to be written?
    fn is_time(&mut self, now: Instant, waiting: bool) -> bool {
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
    fn what_changes_is_written_within_a_second_and_committed_as_late_as_was_said() {
        let start = Instant::now();
        let moments = |every: u64, writes: bool| -> Vec<(u64, Due)> {
            let every = Some(Duration::from_millis(every));
            let mut timers = Timers::new(every, writes, start);
            let mut moments = Vec::new();
            for at in 0..=5000 {
                let now = start + Duration::from_millis(at);
                if let Some(due) = timers.what_is_due(now, true) {
                    moments.push((at, due));
                    match due {
                        Due::Write => timers.wrote(now),
                        Due::Commit => break,
                    }
                }
            }
            moments
        };
        let due = moments(5000, true);
        let (last, writes) = due.split_last().expect("a commit");
        assert!(matches!(last, (4000..=5000, Due::Commit)), "{due:?}");
        let at: Vec<u64> = [0].into_iter().chain(due.iter().map(|it| it.0)).collect();
        assert!(at.windows(2).all(|two| two[1] - two[0] <= 800), "{due:?}");
        assert!(writes.iter().all(|it| it.1 == Due::Write));
        assert_eq!(moments(5000, false), [*last]);
        assert!(moments(700, true).iter().all(|it| it.1 == Due::Commit));
        assert_eq!(Timers::new(None, true, start).due(), None);
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
