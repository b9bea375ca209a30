//! Operations that file flags forbid, whatever the permissions and the caller: ioctl_iflags(2).

use super::Object;
use crate::types::{Errno, FileFlags, Result};

impl Object {
    /// The flags *immutable* and *append*, as far as they are set.
    #[inline]
    pub(crate) fn protection(&self) -> FileFlags {
        self.front.protection()
    }

    /// Is the flag *noatime* set?
    #[inline]
    pub(crate) fn is_noatime(&self) -> bool {
        self.front.is_noatime()
    }

    /// Do the flags allow writing from `start` on? (`None`: at the end.)
    ///
    /// # Errors
    /// `EPERM`.
    pub(crate) fn allow_writing(&self, start: Option<u64>) -> Result<()> {
        let protection = self.protection();
        if protection.is_empty() {
            return Ok(());
        }
        let appends = start.is_none_or(|start| start >= self.size());
        match protection.contains(FileFlags::IMMUTABLE) || !appends {
            true => Err(Errno::EPERM),
            false => Ok(()),
        }
    }

    /// Do the flags allow changing its names and extended attributes?
    ///
    /// # Errors
    /// `EPERM`.
    #[inline]
    pub(crate) fn allow_change(&self) -> Result<()> {
        match self.protection().is_empty() {
            true => Ok(()),
            false => Err(Errno::EPERM),
        }
    }

    /// Is the flag *immutable* clear?
    ///
    /// # Errors
    /// `EPERM`.
    #[inline]
    pub(crate) fn not_immutable(&self) -> Result<()> {
        match self.protection().contains(FileFlags::IMMUTABLE) {
            true => Err(Errno::EPERM),
            false => Ok(()),
        }
    }

    /// May `inode` get a name in this directory, as far as projects decide?
    ///
    /// # Errors
    /// `EXDEV`: the directory passes its project on, and the inode is of another.
    #[inline]
    pub(crate) fn take_in_project(&self, inode: &Self) -> Result<()> {
        let inherits = || self.meta().flags.contains(FileFlags::PROJECT_INHERIT);
        match inherits() && self.project() != inode.project() {
            true => Err(Errno::EXDEV),
            false => Ok(()),
        }
    }
}
