//! A counted use of an inode.

use holdfast_sync::epoch;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::inode::Inode;
use crate::types::{FileType, Ino};

/// A use of an inode: while one exists the inode stays, whatever happens to its names.
///
/// It is only a reference: operations are methods of [`crate::FileSystem`].
pub struct Node(Arc<Inode>);

impl Node {
    /// Counts one more use. The caller holds a use already, or the lock of the inode table's
    /// shard: else the inode may be on its way out.
    pub(crate) fn acquire(inode: &Arc<Inode>) -> Self {
        inode.refs.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(inode))
    }

    /// The inode itself.
    #[inline]
    pub(crate) fn inode(&self) -> &Inode {
        &self.0
    }

    /// The inode's number.
    #[must_use]
    pub fn ino(&self) -> Ino {
        self.0.ino()
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> FileType {
        self.0.kind()
    }

    /// Turns this use into a number: it lasts until [`crate::FileSystem::forget`] gives it back.
    #[must_use]
    pub fn into_raw(self) -> Ino {
        let ino = self.0.ino();
        // One more use outlives the drop of `self`.
        self.0.refs.fetch_add(1, Ordering::Relaxed);
        ino
    }
}

impl Clone for Node {
    fn clone(&self) -> Self {
        Self::acquire(&self.0)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Release pairs with the acquire below: whoever frees the inode sees all its uses done.
        if self.0.refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.unused();
        }
    }
}

impl Inode {
    /// The last use ended. An inode with names stays in memory; an orphan goes.
    pub(crate) fn unused(self: &Arc<Self>) {
        if self.nlink() > 0 {
            return;
        }
        let owner = self
            .view(&epoch::pin())
            .rare
            .and_then(|rare| rare.orphan_of.clone());
        if let Some(core) = owner.and_then(|owner| owner.upgrade()) {
            core.evict(self);
        }
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Node {}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("ino", &self.0.ino())
            .field("kind", &self.0.kind())
            .finish()
    }
}
