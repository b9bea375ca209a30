//! Names: looking them up, creating, linking, removing and renaming them.
//!
//! *Locking.* A change of a directory's names holds their lock from the lookup to the events, so
//! that events and changes have one order. A directory that is removed is locked after its parent.
//! Only a rename locks two directories, under the rename lock. The lock of `meta`, with times and
//! counts, is a leaf.

mod create;
mod link;
mod load;
mod lookup;
mod new_inode;
mod pair;
mod publish;
mod remove;
mod rename;
mod rename_apply;
mod rename_args;
mod rename_through;
mod window;

pub(crate) use create::check_target;
pub(crate) use lookup::dangling;
pub(crate) use new_inode::NewInode;
pub(crate) use rename_args::{End, check_flags};

use crate::core::Core;
use crate::directory::Names;
use crate::inode::{DirectoryBody, Inode};
use crate::types::Result;

impl Core {
    /// Locks the names of a directory for a change of this one, and pins its entry.
    ///
    /// # Errors
    /// The store's.
    #[inline]
    pub(crate) fn lock_name<'n>(
        &self,
        dir: &Inode,
        body: &'n DirectoryBody,
        name: &[u8],
    ) -> Result<Names<'n>> {
        let mut names = body.names.write();
        self.hold_name(dir, &mut names, name)?;
        Ok(names)
    }

    /// As [`Core::lock_name`], for two names.
    fn lock_names<'n>(
        &self,
        dir: &Inode,
        body: &'n DirectoryBody,
        [one, other]: [&[u8]; 2],
    ) -> Result<Names<'n>> {
        let mut names = self.lock_name(dir, body, one)?;
        self.hold_name(dir, &mut names, other)?;
        Ok(names)
    }

    /// Has the directory the greatest link count? The caller holds the lock of its names.
    fn is_full_of_directories(&self, dir: &Inode) -> bool {
        dir.nlink() >= self.policy.link_max()
    }
}
