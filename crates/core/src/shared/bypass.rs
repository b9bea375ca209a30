//! Files that a kernel reads and writes on the host directly, bypassing this core (FUSE
//! passthrough).
//!
//! *Invariant.* While [`Checked::is_bypassed`](crate::coherence::Checked::is_bypassed), the inode's
//! attributes and content are not taken from memory: the store is asked first. That holds from
//! [`FileSystem::begin_bypass`] until the first answer to a request made after
//! [`FileSystem::end_bypass`].

use std::os::fd::BorrowedFd;

use crate::FileSystem;
use crate::node::Node;
use crate::types::{Errno, Result};

impl FileSystem {
    /// Lends the host's file behind a regular file
    /// ([`Shared::with_backing`](crate::store::Shared::with_backing)).
    ///
    /// # Errors
    /// `EOPNOTSUPP`: the store is no directory of the host. `EIO` when the file system was revoked;
    /// errors of the store.
    pub fn with_backing(&self, node: &Node, act: &mut dyn FnMut(BorrowedFd<'_>)) -> Result<()> {
        self.core.alive()?;
        let shared = self.core.shared().ok_or(Errno::EOPNOTSUPP)?;
        shared.with_backing(node.ino(), act)
    }

    /// Does this file system notice writes that bypass it? Not if the store is asked only once for
    /// each file ([`Coherence::Exclusive`](crate::store::Coherence::Exclusive)).
    #[must_use]
    pub fn sees_bypass(&self) -> bool {
        let shared = self.core.shared();
        shared.is_some_and(|shared| shared.coherence.is_dated())
    }

    /// Begins writes that bypass this file system: until `end_bypass`, each use of the file asks
    /// the store first.
    pub fn begin_bypass(&self, node: &Node) {
        if let Some(shared) = self.core.shared() {
            shared.coherence.begin_bypass(node.ino());
        }
    }

    /// Ends such writes.
    pub fn end_bypass(&self, node: &Node) {
        if let Some(shared) = self.core.shared() {
            shared.coherence.end_bypass(node.ino(), shared.now());
        }
    }
}
