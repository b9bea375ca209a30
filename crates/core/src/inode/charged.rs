//! The owner that an inode is charged to: see `crate::quota`.

use super::Object;
use crate::inode::bits::COUNTED;
use crate::quota::{Mark, Owner};

impl Object {
    /// The mark of inodes that quotas count.
    #[inline]
    pub(crate) fn mark(&self) -> Mark<'_> {
        Mark::new(&self.front.marks, COUNTED)
    }

    /// The user and group that are charged. They are read one after the other: the caller holds the
    /// lock under which the owner changes, or owns the inode exclusively. With the mark set, the
    /// page lock suffices.
    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        let (uid, gid) = self.front.owner();
        Owner { uid, gid }
    }
}
