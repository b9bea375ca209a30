//! Extended attributes by path.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use holdfast_core::Node;

use super::{Dir, os_str};
use crate::types::{Errno, Result, XattrSet};
use crate::view::View;

impl Dir {
    /// [`FileSystem::get_xattr`](crate::FileSystem::get_xattr), from here.
    pub fn get_xattr(
        &self,
        path: impl AsRef<Path>,
        name: impl AsRef<OsStr>,
    ) -> io::Result<Option<Vec<u8>>> {
        let node = self.resolve(path.as_ref(), true)?;
        Ok(self.view.get_xattr(&node, name.as_ref())?)
    }

    /// [`FileSystem::set_xattr`](crate::FileSystem::set_xattr), from here.
    pub fn set_xattr(
        &self,
        path: impl AsRef<Path>,
        name: impl AsRef<OsStr>,
        value: impl AsRef<[u8]>,
        how: XattrSet,
    ) -> io::Result<()> {
        let View { core, who } = &*self.view;
        let node = self.resolve(path.as_ref(), true)?;
        Ok(core.setxattr(who, &node, name.as_ref().as_bytes(), value.as_ref(), how)?)
    }

    /// [`FileSystem::remove_xattr`](crate::FileSystem::remove_xattr), from here.
    pub fn remove_xattr(&self, path: impl AsRef<Path>, name: impl AsRef<OsStr>) -> io::Result<()> {
        let View { core, who } = &*self.view;
        let node = self.resolve(path.as_ref(), true)?;
        Ok(core.removexattr(who, &node, name.as_ref().as_bytes())?)
    }

    /// [`FileSystem::list_xattr`](crate::FileSystem::list_xattr), from here.
    pub fn list_xattr(&self, path: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
        let node = self.resolve(path.as_ref(), true)?;
        Ok(self.view.list_xattr(&node)?)
    }
}

impl View {
    /// A value, or none.
    pub(crate) fn get_xattr(&self, node: &Node, name: &OsStr) -> Result<Option<Vec<u8>>> {
        match self.core.getxattr(&self.who, node, name.as_bytes()) {
            Ok(value) => Ok(Some(value.into())),
            Err(Errno::ENODATA) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All names, taken apart.
    pub(crate) fn list_xattr(&self, node: &Node) -> Result<Vec<OsString>> {
        let names = self.core.listxattr(&self.who, node)?;
        let names = names
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty());
        Ok(names.map(|name| os_str(name).to_owned()).collect())
    }
}
