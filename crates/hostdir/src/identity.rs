//! Identity of a file of the host.

use holdfast_core::types::{FileType, Time};
use rustix::fs::{Statx, StatxFlags, StatxTimestamp};
use std::time::{Duration, Instant, SystemTime};

/// Largest granularity of a host's times; and that of a host with whole seconds.
const GRAIN: Duration = Duration::from_millis(20);
const COARSE_GRAIN: Duration = Duration::from_secs(2);
const NANOS: u64 = 1_000_000_000;

/// A file of the host by device and number, unique while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostNumber {
    pub(crate) device: (u32, u32),
    pub(crate) number: u64,
}

/// The same over a longer time: a host reuses the number of a removed file for one with a later
/// birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) host: HostNumber,
    pub(crate) kind: FileType,
    /// `None`: unknown.
    pub(crate) btime: Option<Time>,
}

impl Identity {
    pub(crate) fn of(stat: &Statx) -> Self {
        Self {
            host: HostNumber {
                device: (stat.stx_dev_major, stat.stx_dev_minor),
                number: stat.stx_ino,
            },
            kind: kind(stat),
            btime: btime(stat),
        }
    }

    /// The same number, and an identity of no file.
    pub(crate) fn of_none(self) -> Self {
        Self {
            btime: Some(Time::new(i64::MIN, 0)),
            ..self
        }
    }
}

pub(crate) fn kind(stat: &Statx) -> FileType {
    // A host has no other types.
    FileType::from_mode(u32::from(stat.stx_mode)).unwrap_or(FileType::Regular)
}

pub(crate) fn btime(stat: &Statx) -> Option<Time> {
    let reported = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    reported.then(|| time(stat.stx_btime))
}

pub(crate) fn time(time: StatxTimestamp) -> Time {
    Time::new(time.tv_sec, time.tv_nsec)
}

/// Would a change since then have changed these times?
pub(crate) fn is_settled_since(mtime: Time, ctime: Time, since: Instant) -> bool {
    let Some(by) = SystemTime::now().checked_sub(since.elapsed()) else {
        return false;
    };
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
    }
}
