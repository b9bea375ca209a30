//! A side of a copy: operations for reading and writing a tree.
//!
//! Every operation takes an open directory and one name in it, so no path is too long and no link
//! is followed by accident. The name `.` is the directory itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::types::{FileType, Time};

/// Extended attributes: full names and values.
pub(crate) type Xattrs = Vec<(OsString, Vec<u8>)>;

/// The attributes of an inode that a copy needs.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) kind: FileType,
    pub(crate) perm: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u64,
    pub(crate) size: u64,
    pub(crate) nlink: u64,
    /// The identity of the inode: device and number.
    pub(crate) id: (u64, u64),
    /// May it have holes?
    pub(crate) sparse: bool,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    /// Was a time outside the range of volumes, and clamped?
    pub(crate) clamped: bool,
}

/// The permission bits kept if the owner cannot be set: without set-id bits.
pub(crate) const NO_PRIVILEGES: u16 = 0o1777;

/// The attributes that could not be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) owner: bool,
    pub(crate) xattrs: u64,
}

/// The host's file systems, or one of Holdfast.
pub(crate) trait Tree {
    /// An open directory.
    type Dir;
    /// An open regular file.
    type File;
    /// The names of a directory, without `.` and `..`.
    type Names: Iterator<Item = io::Result<OsString>>;
    /// A reference to a file that may get more names.
    type Place;

    /// Opens a directory by path; a link is followed.
    fn open_dir(&self, path: &Path) -> io::Result<Self::Dir>;

    /// The attributes of a name; links are not followed.
    fn about(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<About>;

    /// Opens the directory of this name; a link is not followed.
    fn enter(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<Self::Dir>;

    /// The parent directory.
    fn parent(&self, dir: &Self::Dir) -> io::Result<Self::Dir> {
        self.enter(dir, "..".as_ref())
    }

    fn names(&self, dir: &Self::Dir) -> io::Result<Self::Names>;

    /// Where a symbolic link points.
    fn target(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<OsString>;

    /// All extended attributes that can be read.
    fn xattrs(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<Xattrs>;

    /// Opens a regular file for reading.
    fn open(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<Self::File>;

    fn read_at(&self, file: &Self::File, buf: &mut [u8], at: u64) -> io::Result<usize>;

    /// The first run of data at or after `at`; `None` if only a hole follows.
    fn next_data(&self, file: &Self::File, at: u64) -> io::Result<Option<Range<u64>>>;

    /// Makes a directory that only its owner may enter.
    fn make_dir(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<()>;

    /// Makes an empty regular file, open for writing.
    fn make_file(&self, dir: &Self::Dir, name: &OsStr, about: &About) -> io::Result<Self::File>;

    fn make_symlink(&self, dir: &Self::Dir, name: &OsStr, target: &OsStr) -> io::Result<()>;

    /// Makes a pipe, socket or device.
    fn make_special(&self, dir: &Self::Dir, name: &OsStr, about: &About) -> io::Result<()>;

    fn write_all_at(&self, file: &Self::File, bytes: &[u8], at: u64) -> io::Result<()>;

    fn set_len(&self, file: &Self::File, size: u64) -> io::Result<()>;

    /// A reference to a file for [`link`](Self::link); `path` is relative to the top.
    fn place(&self, path: &Path, dir: &Self::Dir, name: &OsStr) -> io::Result<Self::Place>;

    /// Makes another name of a file.
    fn link(
        &self,
        top: &Self::Dir,
        place: &Self::Place,
        dir: &Self::Dir,
        name: &OsStr,
    ) -> io::Result<()>;

    /// Removes a name that is not a directory.
    fn remove(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<()>;

    /// Sets the attributes of a copy.
    fn finish(
        &self,
        dir: &Self::Dir,
        name: &OsStr,
        about: &About,
        xattrs: &Xattrs,
    ) -> io::Result<Lost>;

    /// Called after every name: may drop caches.
    fn relax(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Sets the extended attributes that are `wanted`; returns the number of those that are refused.
pub(crate) fn set_xattrs(
    xattrs: &Xattrs,
    wanted: impl Fn(&OsStr) -> bool,
    set: impl Fn(&OsStr, &[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let mut lost = 0;
    for (name, value) in xattrs.iter().filter(|(name, _)| wanted(name)) {
        match set(name, value) {
            Err(error) if is_refusal(&error) => lost += 1,
            other => other?,
        }
    }
    Ok(lost)
}

/// Is it an error of missing permission or support?
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
    )
}
