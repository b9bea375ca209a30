//! Attributes by path.

use std::io;
use std::path::{Path, PathBuf};

use super::{FileSystem, canonical};
use crate::types::Access;
use crate::{FileTimes, Metadata, Permissions};

impl FileSystem {
    /// The attributes of what a path leads to, as `std::fs::metadata`.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ELOOP`, `ENAMETOOLONG`; `EACCES` without permission to search.
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        self.root.metadata(path)
    }

    /// As [`FileSystem::metadata`], of a symbolic link itself: `std::fs::symlink_metadata`.
    ///
    /// # Errors
    /// As [`FileSystem::metadata`].
    pub fn symlink_metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        self.root.symlink_metadata(path)
    }

    /// Does the path lead to something, and may the caller know, as `std::path::Path::exists`?
    #[must_use]
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.root.exists(path)
    }

    /// Does the path lead to something, as `std::fs::exists`?
    ///
    /// # Errors
    /// Whatever keeps from telling: all errors of [`FileSystem::metadata`] but `ENOENT`.
    pub fn try_exists(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        self.root.try_exists(path)
    }

    /// May the caller read, write, execute (or search), as access(2)?
    ///
    /// # Errors
    /// `EACCES`; `EROFS` for writing on a read-only file system.
    pub fn access(&self, path: impl AsRef<Path>, want: Access) -> io::Result<()> {
        self.root.access(path, want)
    }

    /// The absolute path without symbolic links, `.` and `..`, as `std::fs::canonicalize`.
    ///
    /// ```
    /// use holdfast::FileSystem;
    /// use std::path::Path;
    ///
    /// let fs = FileSystem::memory();
    /// fs.create_dir_all("/usr/lib")?;
    /// fs.symlink("usr/lib", "/lib")?;
    /// assert_eq!(fs.canonicalize("lib/.././lib")?, Path::new("/usr/lib"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`FileSystem::metadata`].
    pub fn canonicalize(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        Ok(canonical::path(&self.root, path.as_ref())?)
    }

    /// Changes a mode, as `std::fs::set_permissions`; symbolic links are followed.
    ///
    /// # Errors
    /// `EPERM` unless the caller is the owner, or acts as one; `EROFS`.
    pub fn set_permissions(
        &self,
        path: impl AsRef<Path>,
        permissions: Permissions,
    ) -> io::Result<()> {
        self.root.set_permissions(path, permissions)
    }

    /// Sets times, as utimensat(2); symbolic links are followed.
    ///
    /// # Errors
    /// `EPERM` unless the caller is the owner, or acts as one; for both times now `EACCES` unless
    /// the caller may write; `EROFS`.
    pub fn set_times(&self, path: impl AsRef<Path>, times: FileTimes) -> io::Result<()> {
        self.root.set_times(path, times)
    }

    /// As [`FileSystem::set_times`], of a symbolic link itself.
    ///
    /// # Errors
    /// As [`FileSystem::set_times`].
    pub fn set_times_nofollow(&self, path: impl AsRef<Path>, times: FileTimes) -> io::Result<()> {
        self.root.set_times_nofollow(path, times)
    }

    /// Changes owner and group, as `std::os::unix::fs::chown`; `None` leaves one as it is.
    ///
    /// # Errors
    /// `EPERM` without `CAP_CHOWN`, except for an owner who picks one of the own groups; `EROFS`.
    pub fn chown(
        &self,
        path: impl AsRef<Path>,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> io::Result<()> {
        self.root.chown(path, uid, gid)
    }

    /// As [`FileSystem::chown`], of a symbolic link itself: `std::os::unix::fs::lchown`.
    ///
    /// # Errors
    /// As [`FileSystem::chown`].
    pub fn lchown(
        &self,
        path: impl AsRef<Path>,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> io::Result<()> {
        self.root.lchown(path, uid, gid)
    }
}
