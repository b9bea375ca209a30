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
    /// The value of an extended attribute; `None` if there is none.
    ///
    /// ACLs are the attributes `system.posix_acl_access` and `system.posix_acl_default`, in the
    /// kernel's format.
    ///
    /// ```
    /// use holdfast::{FileSystem, XattrSet};
    ///
    /// let fs = FileSystem::memory();
    /// fs.write("/page", "<p>")?;
    /// fs.set_xattr("/page", "user.mime_type", "text/html", XattrSet::Any)?;
    /// assert_eq!(fs.get_xattr("/page", "user.mime_type")?.as_deref(), Some(&b"text/html"[..]));
    /// assert_eq!(fs.list_xattr("/page")?, ["user.mime_type"]);
    /// fs.remove_xattr("/page", "user.mime_type")?;
    /// assert_eq!(fs.get_xattr("/page", "user.mime_type")?, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EACCES` for `user.` without permission to read; `EOPNOTSUPP` for an unknown namespace;
    /// `ERANGE` for a name of no or over 255 bytes.
    pub fn get_xattr(
        &self,
        path: impl AsRef<Path>,
        name: impl AsRef<OsStr>,
    ) -> io::Result<Option<Vec<u8>>> {
        let node = self.resolve(path.as_ref(), true)?;
        Ok(self.view.get_xattr(&node, name.as_ref())?)
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` as `how` demands; `EPERM`, `EACCES`, `EROFS`; `E2BIG` for a value over
    /// 64 KiB; `ENOSPC`; `EINVAL` for a malformed ACL; `EOPNOTSUPP`, `ERANGE` as
    /// [`Dir::get_xattr`].
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

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `ENODATA` if there is none; otherwise as [`Dir::set_xattr`].
    pub fn remove_xattr(&self, path: impl AsRef<Path>, name: impl AsRef<OsStr>) -> io::Result<()> {
        let View { core, who } = &*self.view;
        let node = self.resolve(path.as_ref(), true)?;
        Ok(core.removexattr(who, &node, name.as_ref().as_bytes())?)
    }

    /// The names of the extended attributes that the caller may know of.
    ///
    /// # Errors
    /// What the store answers.
    pub fn list_xattr(&self, path: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
        let node = self.resolve(path.as_ref(), true)?;
        Ok(self.view.list_xattr(&node)?)
    }
}

impl View {
    /// A value; `None` if there is none.
    pub(crate) fn get_xattr(&self, node: &Node, name: &OsStr) -> Result<Option<Vec<u8>>> {
        match self.core.getxattr(&self.who, node, name.as_bytes()) {
            Ok(value) => Ok(Some(value.into())),
            Err(Errno::ENODATA) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All names, as a vector.
    pub(crate) fn list_xattr(&self, node: &Node) -> Result<Vec<OsString>> {
        let names = self.core.listxattr(&self.who, node)?;
        let names = names
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty());
        Ok(names.map(|name| os_str(name).to_owned()).collect())
    }
}
