//! Names: looking them up, making, linking, removing and renaming them.
//!
//! *Locking.* A change of a directory's names holds their lock from the lookup to the events, so that
//! events and changes have one order. A directory that goes is
//! locked after the one that holds it. Two directories are locked only by a rename, while the tree's
//! shape stands still. Times and counts are in `meta`, a leaf.

mod carry;
mod create;
mod link;
mod load;
mod lookup;
mod new_inode;
mod pair;
mod publish;
mod remove;
mod rename;
mod window;

pub(crate) use create::check_target;
pub(crate) use lookup::dangling;
pub(crate) use new_inode::NewInode;
pub(crate) use rename::{End, check_flags};

use crate::directory::Names;
use crate::file_system::Core;
use crate::inode::{DirectoryBody, Inode};
use crate::types::Result;

impl Core {
    /// Locks the names of a directory for a change of this one. It is known then what the name leads to.
    ///
    /// # Errors
    /// What the store answers.
    #[inline]
    pub(crate) fn lock_name<'n>(
        &self,
        dir: &Inode,
        body: &'n DirectoryBody,
        name: &[u8],
    ) -> Result<Names<'n>> {
        let mut names = body.names.write();
        if !self.pinned {
            self.hold_name(dir, &mut names, name)?;
        }
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
        if !self.pinned {
            self.hold_name(dir, &mut names, other)?;
        }
        Ok(names)
    }

    /// Is there no room for one more directory in this one, whose names are locked?
    fn is_full_of_directories(&self, dir: &Inode) -> bool {
        dir.nlink() >= self.policy.link_max()
    }
}
