//! Attributes by path.

use std::io;
use std::path::Path;

use super::Dir;
use crate::types::{Access, Errno, SetAttr};
use crate::view::View;
use crate::{FileTimes, Metadata, Permissions};

impl Dir {
    /// The attributes of what a path leads to, as `std::fs::metadata`.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ELOOP`, `ENAMETOOLONG`; `EACCES` without permission to search.
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        Ok(self.stat(path.as_ref(), true)?.into())
    }

    /// As [`Dir::metadata`], of a symbolic link itself: `std::fs::symlink_metadata`.
    ///
    /// # Errors
    /// As [`Dir::metadata`].
    pub fn symlink_metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        Ok(self.stat(path.as_ref(), false)?.into())
    }

    /// Does the path lead to something, and may the caller know, as `std::path::Path::exists`?
    #[must_use]
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.metadata(path).is_ok()
    }

    /// Does the path lead to something, as `std::fs::exists`?
    ///
    /// # Errors
    /// All errors of [`Dir::metadata`] but `ENOENT`.
    pub fn try_exists(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        match self.stat(path.as_ref(), true) {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// May the caller read, write, execute (or search), as access(2)?
    ///
    /// # Errors
    /// `EACCES`; `EROFS` for writing on a read-only file system.
    pub fn access(&self, path: impl AsRef<Path>, want: Access) -> io::Result<()> {
        let View { core, who } = &*self.view;
        let node = self.resolve(path.as_ref(), true)?;
        Ok(core.access(who, &node, want)?)
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
        let change = SetAttr {
            perm: Some(permissions.perm()),
            ..SetAttr::default()
        };
        self.change(path.as_ref(), true, &change)
    }

    /// Sets times, as utimensat(2); symbolic links are followed.
    ///
    /// # Errors
    /// `EPERM` unless the caller is the owner, or acts as one; for both times now `EACCES` unless
    /// the caller may write; `EROFS`.
    pub fn set_times(&self, path: impl AsRef<Path>, times: FileTimes) -> io::Result<()> {
        match times.change() {
            Some(change) => self.change(path.as_ref(), true, &change),
            None => Ok(()),
        }
    }

    /// As [`Dir::set_times`], of a symbolic link itself.
    ///
    /// # Errors
    /// As [`Dir::set_times`].
    pub fn set_times_nofollow(&self, path: impl AsRef<Path>, times: FileTimes) -> io::Result<()> {
        match times.change() {
            Some(change) => self.change(path.as_ref(), false, &change),
            None => Ok(()),
        }
    }

    /// Changes owner and group, as `std::os::unix::fs::chown`; `None` leaves one as it is.
    ///
    /// # Errors
    /// `EPERM` without `CAP_CHOWN`, except for an owner that sets one of its own groups; `EROFS`.
    pub fn chown(
        &self,
        path: impl AsRef<Path>,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> io::Result<()> {
        self.change(path.as_ref(), true, &owner(uid, gid))
    }

    /// As [`Dir::chown`], of a symbolic link itself: `std::os::unix::fs::lchown`.
    ///
    /// # Errors
    /// As [`Dir::chown`].
    pub fn lchown(
        &self,
        path: impl AsRef<Path>,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> io::Result<()> {
        self.change(path.as_ref(), false, &owner(uid, gid))
    }

    fn change(&self, path: &Path, follow: bool, change: &SetAttr) -> io::Result<()> {
        let View { core, who } = &*self.view;
        let node = self.resolve(path, follow)?;
        core.setattr(who, &node, change, None)?;
        Ok(())
    }
}

/// The change for chown(2).
pub(crate) fn owner(uid: Option<u32>, gid: Option<u32>) -> SetAttr {
    SetAttr {
        uid,
        gid,
        ..SetAttr::default()
    }
}
