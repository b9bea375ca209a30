//! Extended attributes of an open file.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use super::File;
use crate::types::XattrSet;
use crate::view::View;

impl File {
    /// The value of an extended attribute; `None` if there is none.
    ///
    /// # Errors
    /// As [`Dir::get_xattr`](crate::Dir::get_xattr).
    pub fn get_xattr(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Vec<u8>>> {
        Ok(self.view().get_xattr(self.opened_node()?, name.as_ref())?)
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// As [`Dir::set_xattr`](crate::Dir::set_xattr).
    pub fn set_xattr(
        &self,
        name: impl AsRef<OsStr>,
        value: impl AsRef<[u8]>,
        how: XattrSet,
    ) -> io::Result<()> {
        let View { core, who } = self.view();
        let name = name.as_ref().as_bytes();
        Ok(core.setxattr(who, self.opened_node()?, name, value.as_ref(), how)?)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// As [`Dir::remove_xattr`](crate::Dir::remove_xattr).
    pub fn remove_xattr(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let View { core, who } = self.view();
        Ok(core.removexattr(who, self.opened_node()?, name.as_ref().as_bytes())?)
    }

    /// The names of the extended attributes that the caller may know of.
    ///
    /// # Errors
    /// What the store answers.
    pub fn list_xattr(&self) -> io::Result<Vec<OsString>> {
        Ok(self.view().list_xattr(self.opened_node()?)?)
    }
}
