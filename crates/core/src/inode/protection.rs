//! What an inode's flags refuse, whatever the permissions and the caller are: see ioctl_iflags(2).

use super::Object;
use crate::types::{Errno, FileFlags, Result};

impl Object {
    /// Those of the flags *immutable* and *append* that it has.
    #[inline]
    pub(crate) fn protection(&self) -> FileFlags {
        self.front.protection()
    }

    /// Does reading leave its access time alone?
    #[inline]
    pub(crate) fn is_noatime(&self) -> bool {
        self.front.is_noatime()
    }

    /// Do its flags allow bytes to be written from `start` on? (`None`: at the end.)
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

    /// Has it none of the flags that keep its names and extended attributes as they are?
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

    /// Is it not immutable?
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

    /// May this inode get a name in this directory, as far as projects decide?
    ///
    /// # Errors
    /// `EXDEV`: what is in the directory is of its project, and the inode is of another.
    #[inline]
    pub(crate) fn take_in_project(&self, inode: &Self) -> Result<()> {
        let inherits = || self.meta().flags.contains(FileFlags::PROJECT_INHERIT);
        match inherits() && self.project() != inode.project() {
            true => Err(Errno::EXDEV),
            false => Ok(()),
        }
    }
}
