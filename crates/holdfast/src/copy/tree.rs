//! A side of a copy: what can be read from, and written to.
//!
//! Every step goes from a directory that is held to one name in it, so no path grows too long and
//! no link leads astray. The name `.` is the directory itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::types::{FileType, Time};

/// Extended attributes: full names and values.
pub(crate) type Xattrs = Vec<(OsString, Vec<u8>)>;

/// The attributes that a copy takes along, and what tells it how to.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) kind: FileType,
    pub(crate) perm: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u64,
    pub(crate) size: u64,
    pub(crate) nlink: u64,
    /// Which inode it is: device and number.
    pub(crate) id: (u64, u64),
    /// May there be holes in it?
    pub(crate) sparse: bool,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    /// Is one of its times beyond what a volume can hold?
    pub(crate) clamped: bool,
}

/// The permissions of a copy that belongs to another user: they lend nobody's privileges.
pub(crate) const NO_PRIVILEGES: u16 = 0o1777;

/// What a copy could not take along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) owner: bool,
    pub(crate) xattrs: u64,
}

/// The host's file system, or one of ours.
pub(crate) trait Tree {
    /// A directory that is held.
    type Dir;
    /// An open regular file.
    type File;
    /// The names of a directory, without `.` and `..`.
    type Names: Iterator<Item = io::Result<OsString>>;
    /// Where a file was made that may get more names.
    type Place;

    /// The attributes of a name; links are not followed.
    fn about(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<About>;

    /// The directory of this name; a link to one is none.
    fn enter(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<Self::Dir>;

    /// The directory that this one is in.
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

    /// The first run of data at or behind `at`; none if only a hole follows.
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

    /// Where this was made, for [`link`](Self::link); `path` leads to it from the top.
    fn place(&self, path: &Path, dir: &Self::Dir, name: &OsStr) -> io::Result<Self::Place>;

    /// Gives one more name to what was made before.
    fn link(
        &self,
        top: &Self::Dir,
        place: &Self::Place,
        dir: &Self::Dir,
        name: &OsStr,
    ) -> io::Result<()>;

    /// Removes a name that is no directory's.
    fn remove(&self, dir: &Self::Dir, name: &OsStr) -> io::Result<()>;

    /// Gives it the attributes of what it is a copy of.
    fn finish(
        &self,
        dir: &Self::Dir,
        name: &OsStr,
        about: &About,
        xattrs: &Xattrs,
    ) -> io::Result<Lost>;

    /// Called after every name: lets go of memory that nobody needs.
    fn relax(&self) -> io::Result<()>;
}

/// Sets those extended attributes that are `wanted` by `set`; gives how many are not to be had there.
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

/// Does this user, or this file system, not get that?
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
    )
}
