//! Attributes by path.

use std::io;
use std::path::Path;

use super::Dir;
use crate::types::{Access, Errno, SetAttr};
use crate::view::View;
use crate::{FileTimes, Metadata, Permissions};

impl Dir {
    /// [`FileSystem::metadata`](crate::FileSystem::metadata), from here.
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        Ok(self.stat(path.as_ref(), true)?.into())
    }

    /// [`FileSystem::symlink_metadata`](crate::FileSystem::symlink_metadata), from here.
    pub fn symlink_metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        Ok(self.stat(path.as_ref(), false)?.into())
    }

    /// [`FileSystem::exists`](crate::FileSystem::exists), from here.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.metadata(path).is_ok()
    }

    /// [`FileSystem::try_exists`](crate::FileSystem::try_exists), from here.
    pub fn try_exists(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        match self.stat(path.as_ref(), true) {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// [`FileSystem::access`](crate::FileSystem::access), from here.
    pub fn access(&self, path: impl AsRef<Path>, want: Access) -> io::Result<()> {
        let View { core, who } = &*self.view;
        let node = self.resolve(path.as_ref(), true)?;
        Ok(core.access(who, &node, want)?)
    }

    /// [`FileSystem::set_permissions`](crate::FileSystem::set_permissions), from here.
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

    /// [`FileSystem::set_times`](crate::FileSystem::set_times), from here.
    pub fn set_times(&self, path: impl AsRef<Path>, times: FileTimes) -> io::Result<()> {
        match times.change() {
            Some(change) => self.change(path.as_ref(), true, &change),
            None => Ok(()),
        }
    }

    /// [`FileSystem::set_times_nofollow`](crate::FileSystem::set_times_nofollow), from here.
    pub fn set_times_nofollow(&self, path: impl AsRef<Path>, times: FileTimes) -> io::Result<()> {
        match times.change() {
            Some(change) => self.change(path.as_ref(), false, &change),
            None => Ok(()),
        }
    }

    /// [`FileSystem::chown`](crate::FileSystem::chown), from here.
    pub fn chown(
        &self,
        path: impl AsRef<Path>,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> io::Result<()> {
        self.change(path.as_ref(), true, &owner(uid, gid))
    }

    /// [`FileSystem::lchown`](crate::FileSystem::lchown), from here.
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

/// The change that chown(2) asks for.
pub(crate) fn owner(uid: Option<u32>, gid: Option<u32>) -> SetAttr {
    SetAttr {
        uid,
        gid,
        ..SetAttr::default()
    }
}
