//! The messages on the socket, each as JSON.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use holdfast::{Changed, Copied, CopyError, Losses, Side};
use serde::{Deserialize, Serialize};

use super::compression::Compression;

/// A path of any bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RawPath(Vec<u8>);

impl From<&Path> for RawPath {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

/// Most bytes of a path in a message to be printed: an archive may have names longer than a
/// message.
const SHOWN_MAX: usize = 4096;

impl RawPath {
    /// A path for messages, truncated to [`SHOWN_MAX`].
    pub(super) fn shown(path: &Path) -> Self {
        let bytes = path.as_os_str().as_bytes();
        Self(bytes[..bytes.len().min(SHOWN_MAX)].to_vec())
    }
}

impl From<&RawPath> for PathBuf {
    fn from(path: &RawPath) -> Self {
        OsString::from_vec(path.0.clone()).into()
    }
}

/// Work on a tree. Paths begin at the root of the file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Job {
    /// Copies a tree within the file system.
    Copy {
        from: RawPath,
        to: RawPath,
    },
    Remove {
        path: RawPath,
    },
    /// Unpacks the archive that is handed over.
    Unpack {
        to: RawPath,
        /// Set owners and permissions as the archive has them? `None`: as tar(1) does for this
        /// user.
        owners: Option<bool>,
        permissions: Option<bool>,
        /// Ignore the names of owners?
        numeric: bool,
    },
    /// Packs an archive into what is handed over.
    Pack {
        from: RawPath,
        compression: Compression,
        numeric: bool,
    },
    /// Reads many files into the memory file that is handed over: see
    /// [`batch`](super::batch).
    Read,
    /// Reads parts of many files, as [`Job::Read`].
    ReadRanges,
    /// Reads the attributes of many files, as [`Job::Read`].
    Stat,
    /// Writes many files of the memory file that is handed over: see [`batch`](super::batch).
    Write {
        /// Bytes of the request in it.
        request: u64,
    },
    /// Lists a tree into the pipe that is handed over: see [`listing`](super::listing).
    List {
        top: RawPath,
        /// How many levels deep; all of them without it.
        depth: Option<usize>,
    },
    Owner {
        path: RawPath,
        uid: Option<u32>,
        gid: Option<u32>,
    },
    Mode {
        path: RawPath,
        mode: String,
    },
}

/// A job, and the umask of its process, which the daemon cannot look up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) job: Job,
    pub(crate) umask: u16,
}

/// An event of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// The counts so far.
    Progress(Counts),
    /// One name failed; the work goes on.
    Failed(Wrong),
    /// A name was left out.
    Skipped(RawPath),
    /// A remark about a name that was done.
    Warning(Wrong),
    /// The job is done.
    Done(Counts),
    /// The job failed as a whole.
    Ended(Wrong),
}

/// Counts of names and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) names: u64,
    files: u64,
    directories: u64,
    symlinks: u64,
    links: u64,
    special: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: u64,
    owners: (u64, Option<RawPath>),
    xattrs: (u64, Option<RawPath>),
    times: (u64, Option<RawPath>),
}

impl From<&Copied> for Counts {
    fn from(copied: &Copied) -> Self {
        let lost = |(count, first): &(u64, Option<PathBuf>)| {
            (*count, first.as_deref().map(RawPath::shown))
        };
        Self {
            names: copied.names(),
            files: copied.files,
            directories: copied.directories,
            symlinks: copied.symlinks,
            links: copied.links,
            special: copied.special,
            bytes: copied.bytes,
            failed: copied.failed,
            owners: lost(&copied.lost.owners),
            xattrs: lost(&copied.lost.xattrs),
            times: lost(&copied.lost.times),
        }
    }
}

impl From<&Changed> for Counts {
    fn from(changed: &Changed) -> Self {
        Self {
            names: changed.names,
            failed: changed.failed,
            ..Self::default()
        }
    }
}

impl From<&Counts> for Copied {
    fn from(counts: &Counts) -> Self {
        let lost =
            |(count, first): &(u64, Option<RawPath>)| (*count, first.as_ref().map(PathBuf::from));
        Self {
            files: counts.files,
            directories: counts.directories,
            symlinks: counts.symlinks,
            links: counts.links,
            special: counts.special,
            bytes: counts.bytes,
            failed: counts.failed,
            lost: Losses {
                owners: lost(&counts.owners),
                xattrs: lost(&counts.xattrs),
                times: lost(&counts.times),
            },
        }
    }
}

/// An error about a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wrong {
    /// Is the path on the source's side?
    pub(crate) is_source: bool,
    pub(crate) path: RawPath,
    pub(crate) text: String,
    /// Is the error a closed output (`EPIPE`)?
    pub(crate) no_reader: bool,
}

impl From<&CopyError> for Wrong {
    fn from(error: &CopyError) -> Self {
        Self {
            is_source: error.side == Side::From,
            path: RawPath::shown(&error.path),
            text: error.error.to_string(),
            no_reader: error.error.kind() == std::io::ErrorKind::BrokenPipe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_room_for_any_name_of_an_archive() {
        let path = PathBuf::from("n".repeat(8 << 20));
        let error = std::io::ErrorKind::BrokenPipe.into();
        let side = Side::From;
        let wrong = Wrong::from(&CopyError { side, path, error });
        assert!(wrong.no_reader);
        let event = serde_json::to_vec(&Event::Failed(wrong)).unwrap();
        assert!(event.len() < super::super::socket::MESSAGE_MAX);
    }

    #[test]
    fn paths_that_are_no_text_come_through() {
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/a\xff\n/b"));
        let job = Job::Remove {
            path: RawPath::from(path),
        };
        let json = serde_json::to_vec(&job).unwrap();
        let Job::Remove { path: again } = serde_json::from_slice(&json).unwrap() else {
            panic!("another job");
        };
        assert_eq!(PathBuf::from(&again), path);
    }

    #[test]
    fn counts_keep_what_a_copy_counted() {
        let mut copied = Copied {
            files: 3,
            directories: 2,
            bytes: 7,
            failed: 1,
            ..Copied::default()
        };
        copied.lost.times = (4, Some("a/b".into()));
        let counts = Counts::from(&copied);
        assert_eq!(counts.names, 6);
        assert_eq!(Copied::from(&counts), copied);
    }
}
