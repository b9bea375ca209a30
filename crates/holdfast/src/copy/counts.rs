use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What a copy has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Regular files.
    pub files: u64,
    /// Directories, those included that were there before.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Further names of files that have several.
    pub links: u64,
    /// Pipes, sockets and devices.
    pub special: u64,
    /// Bytes of content, without holes.
    pub bytes: u64,
    /// Names that were not copied: each was told of.
    pub failed: u64,
    /// What was left behind of those that were copied.
    pub lost: Losses,
}

impl Copied {
    /// Names that are behind the copy, copied or not.
    #[must_use]
    pub fn names(&self) -> u64 {
        let made = self.files + self.directories + self.symlinks + self.links + self.special;
        made + self.failed
    }
}

/// What a copy left behind because this user, or the file system copied to, does not get it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Names whose owner or group is another one, the first of them, and with them set-id bits.
    pub owners: (u64, Option<PathBuf>),
    /// Names that lack extended attributes, and the first of them.
    pub xattrs: (u64, Option<PathBuf>),
    /// Names with times outside 1901 to 2486, which were clamped, and the first of them.
    pub times: (u64, Option<PathBuf>),
}

/// Counts one, and keeps the first name.
pub(crate) fn count(losses: &mut (u64, Option<PathBuf>), path: &Path) {
    losses.0 += 1;
    if losses.1.is_none() {
        losses.1 = Some(path.to_owned());
    }
}

/// On which side of a copy something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where it comes from.
    From,
    /// Where it goes.
    To,
}

/// Why something was not copied.
#[derive(Debug)]
pub struct CopyError {
    /// On which side.
    pub side: Side,
    /// The path on that side: empty for an archive itself.
    pub path: PathBuf,
    /// What went wrong with it.
    pub error: io::Error,
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
