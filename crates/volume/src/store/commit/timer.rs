//! When commits are made unasked.

use std::time::Duration;

/// Changes start on their way to the device's cache after this time. With the write itself that
/// takes at most a second.
const WRITE_EVERY: Duration = Duration::from_millis(500);
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);

/// How soon changes survive a failure, by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promptness {
    /// After this time they are with the host: they survive the process.
    pub written: Option<Duration>,
    /// After this time they are durable: they survive a power cut.
    pub flushed: Option<Duration>,
}

impl Promptness {
    /// For a commit interval. `writes`: does a write without a flush survive the process?
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

/// The interval of writes without a flush, if they are of use.
pub(in crate::store) fn writes_every(every: Option<Duration>, writes: bool) -> Option<Duration> {
    let later = every.filter(|every| writes && *every > WRITE_EVERY);
    later.map(|_| WRITE_EVERY)
}

/// The interval of commits, such that changes are durable within `every`: the commit takes a part
/// of that time.
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
