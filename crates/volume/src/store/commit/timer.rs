//! When a commit is made that nobody asks for.

use std::time::Duration;

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

/// How often a commit is made of changes that are to be durable within this time: what it takes itself is to end within it.
pub(in crate::store) fn commits_every(every: Duration) -> Duration {
    every / 5 * 4
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
