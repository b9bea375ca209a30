//! A counted reference to an inode.

use holdfast_sync::{Freeing, Ref};
use std::fmt;
use std::mem;

use crate::inode::{Inode, Numbered as _, Object};
use crate::types::{FileType, Ino};

/// A reference to an inode: it keeps the inode, whatever happens to the inode's names.
///
/// Operations are methods of [`crate::FileSystem`].
#[derive(Clone)]
pub struct Node {
    /// `None` only after `into_inner` or in the drop.
    pub(crate) inode: Option<Ref<Object>>,
}

impl Node {
    pub(crate) fn new(inode: Ref<Object>) -> Self {
        Self { inode: Some(inode) }
    }

    /// References an inode that was found under a guard, unless it is being freed.
    pub(crate) fn acquire(inode: &Inode) -> Option<Self> {
        inode.try_ref().map(Self::new)
    }

    /// As [`acquire`](Self::acquire), for a walk over all inodes: does not switch the inode to a
    /// reference count per core.
    #[inline]
    pub(crate) fn acquire_in_passing(inode: &Inode) -> Option<Self> {
        inode.try_ref_in_passing().map(Self::new)
    }

    /// The inode.
    #[inline]
    pub(crate) fn inode(&self) -> &Inode {
        match &self.inode {
            Some(inode) => inode,
            None => unreachable!("taken by the drop only"),
        }
    }

    /// The reference, to be dropped by other means than `Node`'s drop.
    #[inline]
    pub(crate) fn into_inner(mut self) -> Option<Ref<Object>> {
        let inode = self.inode.take();
        // `inode` is `None`: skips the check in the drop.
        mem::forget(self);
        inode
    }

    /// Marks the inode as freeing if this is the only reference; otherwise returns the node.
    pub(crate) fn into_last(mut self) -> Result<Freeing<Object>, Self> {
        match self.inode.take().map(Ref::release_last) {
            Some(Ok(freeing)) => Ok(freeing),
            Some(Err(inode)) => Err(Self::new(inode)),
            None => Err(self),
        }
    }

    /// The inode's number.
    #[must_use]
    pub fn ino(&self) -> Ino {
        self.inode().ino()
    }

    /// The inode's type.
    #[must_use]
    pub fn kind(&self) -> FileType {
        self.inode().kind()
    }

    /// Is a reference of this inode held by number? A snapshot: it may miss references of an inode
    /// that many threads use at the moment.
    #[must_use]
    pub fn is_known_by_number(&self) -> bool {
        self.inode().has_raw_uses()
    }

    /// Converts this reference to a number: it lasts until [`crate::FileSystem::forget`] drops it.
    #[must_use]
    pub fn into_raw(self) -> Ino {
        let ino = self.ino();
        if let Some(inode) = self.into_inner() {
            inode.into_raw();
        }
        ino
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.inode(), other.inode())
    }
}

impl Eq for Node {}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("ino", &self.ino())
            .field("kind", &self.kind())
            .finish()
    }
}
