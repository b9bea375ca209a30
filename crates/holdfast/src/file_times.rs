use std::time::SystemTime;

use crate::types::{SetAttr, SetTime};

/// Times for `set_times`, as `std::fs::FileTimes`. A time that is not set stays.
///
/// ```
/// use holdfast::{FileSystem, FileTimes};
/// use std::time::{Duration, UNIX_EPOCH};
///
/// let fs = FileSystem::memory();
/// fs.write("/release", "")?;
/// let day = UNIX_EPOCH + Duration::from_secs(86400);
/// fs.set_times("/release", FileTimes::new().set_modified(day))?;
/// assert_eq!(fs.metadata("/release")?.modified()?, day);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "times are set only by `set_times`"]
pub struct FileTimes {
    accessed: Option<SetTime>,
    modified: Option<SetTime>,
}

impl FileTimes {
    /// Leaves both times as they are.
    pub fn new() -> Self {
        Self::default()
    }

    /// Both times now, as touch(1): needs only permission to write, where explicit times need
    /// the owner.
    pub fn now() -> Self {
        Self {
            accessed: Some(SetTime::Now),
            modified: Some(SetTime::Now),
        }
    }

    /// Sets the time of last access; outside 1901 to 2486 it is clamped.
    pub fn set_accessed(mut self, time: SystemTime) -> Self {
        self.accessed = Some(SetTime::At(time.into()));
        self
    }

    /// Sets the time of last modification; outside 1901 to 2486 it is clamped.
    pub fn set_modified(mut self, time: SystemTime) -> Self {
        self.modified = Some(SetTime::At(time.into()));
        self
    }

    /// The change; `None` if no time is set: then not even the time of change moves.
    pub(crate) fn change(self) -> Option<SetAttr> {
        (self != Self::default()).then(|| SetAttr {
            atime: self.accessed,
            mtime: self.modified,
            ..SetAttr::default()
        })
    }
}
