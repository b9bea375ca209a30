//! What quotas need to know of an inode: see `crate::quota`.

use super::Object;
use super::marks::COUNTED;
use crate::quota::{Mark, Owner};

impl Object {
    /// Is it counted? To be asked and changed as quotas say.
    #[inline]
    pub(crate) fn mark(&self) -> Mark<'_> {
        Mark::new(&self.front.marks, COUNTED)
    }

    /// To whom it is charged. User and group are read one after the other: the caller holds what
    /// an owner changes under, or has the inode to itself. With the mark set, the content lock
    /// will do.
    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        let (uid, gid) = self.front.owner();
        Owner { uid, gid }
    }
}
