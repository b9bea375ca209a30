//! How a daemon ended, for the process that unmounts and is not its parent.
//!
//! The daemon makes a file in memory when it begins, and writes its result there before it ends. The other opens that file
//! through /proc while the daemon lives, and reads it once the daemon has ended. So there is no name to be made or cleared, and
//! those may read it who may look into the daemon: root, and the user who mounted.

use crate::message::{Failure, Result};
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
};

const NAME: &str = "holdfast-exit-report";

/// The largest report that is read: the file is another process's.
const BYTES_MAX: u64 = 1 << 16;

/// What is written there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    Well,
    Failed(Failure),
}

/// The file in memory.
#[derive(Debug)]
pub(crate) struct ExitReport(File);

/// What a daemon that has ended left there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is durable, and what it served is closed.
    Well,
    /// It is not.
    Failed(Failure),
    /// Nothing: it was killed, or ended by a bug.
    Silent,
}

impl ExitReport {
    /// Of this process; the file lives as long as this value, and as others have it open.
    pub(super) fn create() -> io::Result<Self> {
        let file = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC)?;
        Ok(Self(file.into()))
    }

    /// Writes the result of this process.
    pub(super) fn write(&self, result: &Result<()>) -> io::Result<()> {
        let ended = match result {
            Ok(()) => Ended::Well,
            Err(failure) => Ended::Failed(failure.clone()),
        };
        (&self.0).write_all(&serde_json::to_vec(&ended)?)
    }

    /// That of another process, as long as it lives; `None`: it has none, or this user may not see it.
    pub(crate) fn of_process(pid: u32) -> Option<Self> {
        let target = format!("/memfd:{NAME} (deleted)");
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let paths = descriptors.filter_map(|entry| Some(entry.ok()?.path()));
        let is_it = |path: &std::path::PathBuf| {
            fs::read_link(path).is_ok_and(|to| to == Path::new(&target))
        };
        let path = paths.into_iter().find(is_it)?;
        Some(Self(File::open(path).ok()?))
    }

    /// What is written there, once the process has ended.
    pub(crate) fn read(self) -> Exit {
        let mut bytes = Vec::new();
        let read = self.0.take(BYTES_MAX).read_to_end(&mut bytes);
        match read.map(|_| serde_json::from_slice(&bytes)) {
            Ok(Ok(Ended::Well)) => Exit::Well,
            Ok(Ok(Ended::Failed(failure))) => Exit::Failed(failure),
            Ok(Err(_)) | Err(_) => Exit::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_found_by_the_process_and_read_after_its_end() {
        let own = std::process::id();
        for result in [Ok(()), Err(Failure::new("no").hint("say please"))] {
            let report = ExitReport::create().unwrap();
            let found = ExitReport::of_process(own).expect("it is there");
            report.write(&result).unwrap();
            drop(report);
            let expected = result.map_or_else(Exit::Failed, |()| Exit::Well);
            assert_eq!(found.read(), expected);
        }
        assert!(ExitReport::of_process(own).is_none());
        assert_eq!(ExitReport::create().unwrap().read(), Exit::Silent);
    }
}
