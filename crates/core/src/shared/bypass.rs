//! Files that a kernel reads and writes on the host by itself, past this core (FUSE passthrough).
//!
//! *Invariant.* While [`Checked::is_bypassed`](crate::coherence::Checked::is_bypassed) of an inode, no attribute and no byte of it is taken from memory:
//! the store is asked first. That is so from [`FileSystem::begin_bypass`] until the first answer to a question that was asked after
//! [`FileSystem::end_bypass`].

use std::os::fd::BorrowedFd;

use crate::FileSystem;
use crate::node::Node;
use crate::types::{Errno, Result};

impl FileSystem {
    /// Shows the host's file behind a regular file, if there is one
    /// ([`Shared::with_backing`](crate::store::Shared::with_backing)).
    ///
    /// # Errors
    /// `EOPNOTSUPP`: the store is no directory of the host. `EIO` when the file system was revoked; what the store answers.
    pub fn with_backing(&self, node: &Node, act: &mut dyn FnMut(BorrowedFd<'_>)) -> Result<()> {
        self.core.alive()?;
        let shared = self.core.shared().ok_or(Errno::EOPNOTSUPP)?;
        shared.with_backing(node.ino(), act)
    }

    /// Can a file be written past this file system, and what it becomes be seen? Not if the store is asked for each file only
    /// once ([`Coherence::Exclusive`](crate::store::Coherence::Exclusive)).
    #[must_use]
    pub fn sees_bypass(&self) -> bool {
        let shared = self.core.shared();
        shared.is_some_and(|shared| shared.coherence.is_dated())
    }

    /// A file that is open is written past this file system from now on: what it is by then is asked of the store each time.
    pub fn begin_bypass(&self, node: &Node) {
        if let Some(shared) = self.core.shared() {
            shared.coherence.begin_bypass(node.ino());
        }
    }

    /// It is no longer.
    pub fn end_bypass(&self, node: &Node) {
        if let Some(shared) = self.core.shared() {
            shared.coherence.end_bypass(node.ino(), shared.now());
        }
    }
}
