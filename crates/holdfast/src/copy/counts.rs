use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::tree::Lost;

/// The counts of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Regular files.
    pub files: u64,
    /// Directories, including those that existed before.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Further names of files that have several.
    pub links: u64,
    /// Pipes, sockets and devices.
    pub special: u64,
    /// Bytes of content, without holes.
    pub bytes: u64,
    /// Names that failed; each was reported.
    pub failed: u64,
    /// Attributes that were lost.
    pub lost: Losses,
}

impl Copied {
    /// Names that were handled, including those that failed.
    #[must_use]
    pub fn names(&self) -> u64 {
        let made = self.files + self.directories + self.symlinks + self.links + self.special;
        made + self.failed
    }
}

/// Attributes that a copy lost, because this user may not set them or the target cannot hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Names with another owner or group, which also lose set-id bits; and the first of them.
    pub owners: (u64, Option<PathBuf>),
    /// Names that lack extended attributes, and the first of them.
    pub xattrs: (u64, Option<PathBuf>),
    /// Names with times outside 1901 to 2486, which were clamped, and the first of them.
    pub times: (u64, Option<PathBuf>),
}

impl Losses {
    /// Counts what a name lost. `clamped`: its times were.
    pub(crate) fn note(&mut self, lost: Lost, clamped: bool, path: &Path) {
        if lost.owner {
            count(&mut self.owners, path);
        }
        if lost.xattrs > 0 {
            count(&mut self.xattrs, path);
        }
        if clamped {
            count(&mut self.times, path);
        }
    }
}

/// Counts a loss, and keeps the first path.
pub(crate) fn count(losses: &mut (u64, Option<PathBuf>), path: &Path) {
    losses.0 += 1;
    if losses.1.is_none() {
        losses.1 = Some(path.to_owned());
    }
}

/// A side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The source.
    From,
    /// The target.
    To,
}

/// The error of a copy.
#[derive(Debug)]
pub struct CopyError {
    /// The side with the error.
    pub side: Side,
    /// The path on that side: empty for an archive itself.
    pub path: PathBuf,
    /// The error.
    pub error: io::Error,
}

impl CopyError {
    pub(crate) fn new(side: Side, path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        Self { side, path, error }
    }

    /// An error of a path below the top of a side.
    pub(crate) fn below(side: Side, top: &Path, path: &Path, error: io::Error) -> Self {
        // Joining an empty path would add a slash.
        match path.as_os_str().is_empty() {
            true => Self::new(side, top, error),
            false => Self::new(side, &top.join(path), error),
        }
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.as_os_str().is_empty() {
            write!(f, "{}: ", self.path.display())?;
        }
        self.error.fmt(f)
    }
}

impl Error for CopyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

impl From<CopyError> for io::Error {
    fn from(error: CopyError) -> Self {
        Self::new(error.error.kind(), error)
    }
}
