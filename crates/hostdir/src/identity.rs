//! What tells one file of the host from another.

use holdfast_core::types::{FileType, Time};
use rustix::fs::{Statx, StatxFlags, StatxTimestamp};
use std::time::{Duration, Instant, SystemTime};

/// Times of a host move in steps that are not longer than this; where they have whole seconds, than that.
const GRAIN: Duration = Duration::from_millis(20);
const COARSE_GRAIN: Duration = Duration::from_secs(2);
const NANOS: u64 = 1_000_000_000;

/// A file of the host by device and number, as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostNumber {
    pub(crate) device: (u32, u32),
    pub(crate) number: u64,
}

/// The same, over a longer time: a host gives the number of a file that is gone to another, which was born later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) host: HostNumber,
    pub(crate) kind: FileType,
    /// `None`: the host does not say.
    pub(crate) birth: Option<Time>,
}

impl Identity {
    pub(crate) fn of(stat: &Statx) -> Self {
        Self {
            host: HostNumber::of(stat),
            kind: kind(stat),
            birth: birth(stat),
        }
    }

    /// The same number of the host, and no file that there is.
    pub(crate) fn of_none(self) -> Self {
        Self {
            birth: Some(Time::new(i64::MIN, 0)),
            ..self
        }
    }
}

impl HostNumber {
    pub(crate) fn of(stat: &Statx) -> Self {
        Self {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            number: stat.stx_ino,
        }
    }
}

pub(crate) fn kind(stat: &Statx) -> FileType {
    // A host has no other types than these.
    FileType::from_mode(u32::from(stat.stx_mode)).unwrap_or(FileType::Regular)
}

pub(crate) fn birth(stat: &Statx) -> Option<Time> {
    let told = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    told.then(|| time(stat.stx_btime))
}

pub(crate) fn time(time: StatxTimestamp) -> Time {
    Time::new(time.tv_sec, time.tv_nsec)
}

/// Would a change from now on move the times of a file that has these?
pub(crate) fn is_settled(mtime: Time, ctime: Time) -> bool {
    is_settled_by(mtime, ctime, SystemTime::now())
}

/// Would a change since then move the times of a file that had these then?
pub(crate) fn is_settled_since(mtime: Time, ctime: Time, since: Instant) -> bool {
    let by = SystemTime::now().checked_sub(since.elapsed());
    by.is_some_and(|by| is_settled_by(mtime, ctime, by))
}

fn is_settled_by(mtime: Time, ctime: Time, by: SystemTime) -> bool {
    let changed = mtime.max(ctime);
    let coarse = mtime.subsec_nanos() == 0 && ctime.subsec_nanos() == 0;
    let grain = if coarse { COARSE_GRAIN } else { GRAIN };
    let nanos = u64::from(changed.subsec_nanos()) + grain.as_nanos() as u64;
    let secs = changed.secs().saturating_add((nanos / NANOS) as i64);
    Time::from(by) > Time::new(secs, (nanos % NANOS) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_settled_by_when_it_was_asked_for_and_not_by_when_that_is_looked_at() {
        let begun = Instant::now();
        let changed = Time::from(SystemTime::now());
        assert!(!is_settled_since(changed, changed, begun));
        std::thread::sleep(3 * GRAIN);
        // A change within the same step of the clock, after the question, would not show.
        assert!(!is_settled_since(changed, changed, begun));
        assert!(is_settled_since(changed, changed, Instant::now()));
        assert!(is_settled(changed, changed));
    }
}
