//! A counted use of an inode.

use holdfast_sync::{Freeing, Ref};
use std::fmt;
use std::mem;

use crate::inode::{Inode, Numbered as _, Object};
use crate::registry;
use crate::types::{FileType, Ino};

/// A use of an inode: while one exists the inode stays, whatever happens to its names.
///
/// It is only a reference: operations are methods of [`crate::FileSystem`].
#[derive(Clone)]
pub struct Node {
    /// There until the drop takes it.
    inode: Option<Ref<Object>>,
}

impl Node {
    pub(crate) fn new(inode: Ref<Object>) -> Self {
        Self { inode: Some(inode) }
    }

    /// One more use of an inode that was found under a guard, unless it is on its way out.
    pub(crate) fn acquire(inode: &Inode) -> Option<Self> {
        inode.try_ref().map(Self::new)
    }

    /// As [`acquire`](Self::acquire), for a walk over all inodes: its passing is no sign that several
    /// threads use this one.
    #[inline]
    pub(crate) fn acquire_in_passing(inode: &Inode) -> Option<Self> {
        inode.try_ref_in_passing().map(Self::new)
    }

    /// The inode itself.
    #[inline]
    pub(crate) fn inode(&self) -> &Inode {
        match &self.inode {
            Some(inode) => inode,
            None => unreachable!("taken by the drop only"),
        }
    }

    /// The use, to be given back by other means than a drop.
    #[inline]
    pub(crate) fn into_inner(mut self) -> Option<Ref<Object>> {
        let inode = self.inode.take();
        // Nothing is left that its drop would have to look for.
        mem::forget(self);
        inode
    }

    /// The end of an inode that has no other use; otherwise the node again.
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

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> FileType {
        self.inode().kind()
    }

    /// Did somebody turn a use of this inode into a number, and not give it back yet? A snapshot, which may miss
    /// it in an inode that many threads use at the moment.
    #[must_use]
    pub fn is_known_by_number(&self) -> bool {
        self.inode().has_raw_uses()
    }

    /// Turns this use into a number: it lasts until [`crate::FileSystem::forget`] gives it back.
    #[must_use]
    pub fn into_raw(self) -> Ino {
        let ino = self.ino();
        if let Some(inode) = self.into_inner() {
            inode.into_raw();
        }
        ino
    }
}

impl Drop for Node {
    #[inline]
    fn drop(&mut self) {
        if let Some(freeing) = self.inode.take().and_then(Ref::release_inline) {
            end(freeing);
        }
    }
}

/// The last use of an orphan went.
#[cold]
fn end(freeing: Freeing<Object>) {
    // Without its file system there is nothing to settle; the number may be another's by now.
    if let Some(core) = registry::find(freeing.file_system())
        && core.holds(&freeing)
    {
        core.end(freeing);
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
