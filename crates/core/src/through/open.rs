//! Files that are opened: the store is told, so that they stay the same whatever becomes of their names.

use super::ThroughStore;
use crate::inode::{DirectoryBody, Inode};
use crate::namespace::NewInode;
use crate::node::Node;
use crate::types::{Caller, Errno, FileType, Ino, OpenFlags, Result};

/// So often a name may come and go between being looked for and being made.
const ROUNDS: u32 = 16;

/// What [`ThroughStore::create`] came to.
pub(crate) enum Created {
    /// It was made, and is open for writing if that was asked for.
    Made(Node),
    /// It is there.
    Found(Node),
}

impl ThroughStore<'_> {
    /// Opens an inode: for writing, or where others may change the store. Was the store told?
    ///
    /// # Errors
    /// `ESTALE`: it has gone, so its name is to be looked up again. What the store answers.
    pub(crate) fn open(self, who: &Caller, node: &Node, writes: bool) -> Result<bool> {
        self.core.alive()?;
        if !writes && !self.shared.coherence.is_dated() {
            return Ok(false);
        }
        let opened = self.store.open(who, node.ino(), writes);
        opened.map_err(|error| self.core.or_gone(error))?;
        Ok(true)
    }

    /// An open file is closed that was [opened](Self::open).
    pub(crate) fn close(self, ino: Ino, writes: bool) {
        self.store.close(ino, writes);
    }

    /// Makes a regular file, or finds what has its name.
    ///
    /// # Errors
    /// `EEXIST` with EXCLUSIVE; those of [`make`](Self::make).
    pub(crate) fn create(
        self,
        who: &Caller,
        (dir, body): (&Inode, &DirectoryBody),
        name: &[u8],
        perm: u16,
        flags: OpenFlags,
    ) -> Result<Created> {
        let new_inode = NewInode::of(FileType::Regular, perm);
        for _ in 0..ROUNDS {
            match self.make(who, (dir, body), name, new_inode, flags.writable()) {
                Err(Errno::EEXIST) if !flags.contains(OpenFlags::EXCLUSIVE) => {}
                made => return made.map(Created::Made),
            }
            // Whatever was known of the name.
            if let Some(found) = self.core.ask_by_name(self.shared, dir, name)? {
                return Ok(Created::Found(found));
            }
        }
        Err(Errno::EEXIST)
    }
}
