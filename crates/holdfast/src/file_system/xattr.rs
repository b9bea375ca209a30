//! Extended attributes by path; symbolic links are followed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use super::FileSystem;
use crate::types::XattrSet;

impl FileSystem {
    /// The value of an extended attribute, if it is there.
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
        self.root.get_xattr(path, name)
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` as `how` demands; `EPERM`, `EACCES`, `EROFS`; `E2BIG` for a value over
    /// 64 KiB; `ENOSPC`; `EINVAL` for a malformed ACL; `EOPNOTSUPP`, `ERANGE` as
    /// [`FileSystem::get_xattr`].
    pub fn set_xattr(
        &self,
        path: impl AsRef<Path>,
        name: impl AsRef<OsStr>,
        value: impl AsRef<[u8]>,
        how: XattrSet,
    ) -> io::Result<()> {
        self.root.set_xattr(path, name, value, how)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `ENODATA` if there is none; otherwise as [`FileSystem::set_xattr`].
    pub fn remove_xattr(&self, path: impl AsRef<Path>, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.root.remove_xattr(path, name)
    }

    /// The names of the extended attributes that the caller may know of.
    ///
    /// # Errors
    /// What the store answers.
    pub fn list_xattr(&self, path: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
        self.root.list_xattr(path)
    }
}
