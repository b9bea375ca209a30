//! The result of a daemon, for the process that unmounts, which is not its parent.
//!
//! The daemon makes a memfd when it starts, and writes its result there before it ends. The process
//! that unmounts opens that file through /proc while the daemon lives, and reads it once the daemon
//! has ended. So there is no name to make or clean up. The file can be read by root and the user
//! that mounted, as /proc/PID/fd allows.

use crate::message::{Failure, Result};
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Read, Seek},
    os::unix::{ffi::OsStrExt, fs::FileExt},
    path::Path,
};

const NAME: &str = "holdfast-exit-report";

/// The largest report that is read: the file is another process's.
const BYTES_MAX: u64 = 1 << 16;

/// A path: it need not be text.
type Bytes = Vec<u8>;

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    /// The daemon serves the mount at this path.
    Serving(Bytes),
    Well,
    Failed(Failure),
}

/// The memfd.
#[derive(Debug)]
pub(crate) struct ExitReport(File);

/// The result of a daemon that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All changes are durable, and the source is closed.
    Well,
    /// The daemon failed.
    Failed(Failure),
    /// No result: the daemon was killed or crashed.
    Silent,
}

impl ExitReport {
    /// Makes the file of this process, which serves the mount at `dir`.
    pub(super) fn create(dir: &Path) -> io::Result<Self> {
        let report = Self(rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC)?.into());
        report.put(&Ended::Serving(dir.as_os_str().as_bytes().to_owned()))?;
        Ok(report)
    }

    /// Writes the result of this process.
    pub(super) fn write(&self, result: &Result<()>) -> io::Result<()> {
        self.0.set_len(0)?;
        self.put(&match result {
            Ok(()) => Ended::Well,
            Err(failure) => Ended::Failed(failure.clone()),
        })
    }

    fn put(&self, ended: &Ended) -> io::Result<()> {
        self.0.write_all_at(&serde_json::to_vec(ended)?, 0)
    }

    /// Opens the file of a living process; `None`: it has none, or this user may not open it.
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

    /// The process that serves the mount at `dir`, found without asking the mount; `None`: there is
    /// none, or this user may not see it.
    pub(crate) fn server_of(dir: &Path) -> Option<u32> {
        let processes = fs::read_dir("/proc").ok()?;
        let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let serves = |pid: &u32| {
            let report = Self::of_process(*pid).and_then(|report| report.get());
            matches!(report, Some(Ended::Serving(other)) if other == dir.as_os_str().as_bytes())
        };
        numbers.into_iter().find(serves)
    }

    /// Has the process written its result?
    pub(crate) fn is_written(&self) -> bool {
        matches!(self.get(), Some(Ended::Well | Ended::Failed(_)))
    }

    /// The result of a process that has ended.
    pub(crate) fn read(self) -> Exit {
        match self.get() {
            Some(Ended::Well) => Exit::Well,
            Some(Ended::Failed(failure)) => Exit::Failed(failure),
            Some(Ended::Serving(_)) | None => Exit::Silent,
        }
    }

    fn get(&self) -> Option<Ended> {
        let mut bytes = Vec::new();
        (&self.0).rewind().ok()?;
        let read = (&self.0).take(BYTES_MAX).read_to_end(&mut bytes);
        read.ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_found_by_the_process_and_read_after_its_end() {
        let own = std::process::id();
        for result in [Ok(()), Err(Failure::new("no").hint("say please"))] {
            let dir = Path::new("/mnt/a test's own");
            let report = ExitReport::create(dir).unwrap();
            assert_eq!(ExitReport::server_of(dir), Some(own));
            let found = ExitReport::of_process(own).expect("it is there");
            report.write(&result).unwrap();
            drop(report);
            let expected = result.map_or_else(Exit::Failed, |()| Exit::Well);
            assert_eq!(found.read(), expected);
        }
        assert!(ExitReport::of_process(own).is_none());
        let unwritten = ExitReport::create(Path::new("/mnt/killed")).unwrap();
        assert_eq!(unwritten.read(), Exit::Silent);
    }
}
