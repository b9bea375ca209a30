//! Names: looking them up, making, linking, removing and renaming them.
//!
//! *Locking.* A change of a directory's names holds the lock of its `names`, or of the one or two
//! that it is about, from the lookup to the events, so that events and changes of a name have one
//! order. A directory that goes is
//! locked after the one that holds it. Two directories are locked only by a rename, while the tree's
//! shape stands still. Times and counts are in `meta`, a leaf.

mod birth;
mod carry;
mod create;
mod link;
mod load;
mod lookup;
mod pair;
mod publish;
mod remove;
mod rename;
mod window;

pub(crate) use birth::Birth;
pub(crate) use create::check_target;
pub(crate) use lookup::dangling;
pub(crate) use rename::{End, check_flags};

use crate::directory::Names;
use crate::file_system::Core;
use crate::inode::{DirectoryBody, Inode};
use crate::types::Result;

impl Core {
    /// Locks a name of a directory for changes: over a store that hears of changes all of its names,
    /// so that they reach it in the order of their making. It is known then what the name leads to.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn lock_name<'n>(
        &self,
        dir: &'n Inode,
        body: &'n DirectoryBody,
        name: &'n [u8],
    ) -> Result<Names<'n>> {
        let mut names = body.names.unclaimed();
        self.lock_one(&mut names, dir, body, name)?;
        Ok(names)
    }

    /// As [`Core::lock_name`], in the place where it is kept.
    #[inline]
    pub(crate) fn lock_one<'n>(
        &self,
        names: &mut Names<'n>,
        dir: &'n Inode,
        body: &'n DirectoryBody,
        name: &'n [u8],
    ) -> Result<()> {
        if self.pinned {
            names.claim(name, None);
            return Ok(());
        }
        *names = body.names.write(dir);
        self.hold_name(dir, names, name)
    }

    /// As [`Core::lock_name`], for two names.
    fn lock_names<'n>(
        &self,
        dir: &'n Inode,
        body: &'n DirectoryBody,
        names: [&'n [u8]; 2],
    ) -> Result<Names<'n>> {
        if self.pinned {
            let mut claimed = body.names.unclaimed();
            claimed.claim(names[0], Some(names[1]));
            return Ok(claimed);
        }
        let mut locked = body.names.write(dir);
        for name in names {
            self.hold_name(dir, &mut locked, name)?;
        }
        Ok(locked)
    }

    /// Is there no room for one more directory in this one, whose name (or all) is locked?
    fn is_full_of_directories(&self, dir: &Inode) -> bool {
        let most = self.policy.link_max();
        // As many as nobody makes need not be counted.
        most < UNCOUNTED && dir.stat().nlink >= most
    }
}

/// More directories than can be in one.
const UNCOUNTED: u32 = 1 << 30;
