//! The moment from which a new inode is found by its number, and the way back.

use holdfast_sync::Prepared;
use holdfast_sync::Ref;
use holdfast_sync::epoch;

use crate::file_system::Core;
use crate::inode::Object;
use crate::node::Node;
use crate::quota::Check;
use crate::store::{Reservation, Space};
use crate::types::{Errno, Ino, Result};

/// What an inode takes of its store.
const AN_INODE: Space = Space {
    pages: 0,
    inodes: 1,
    bytes: 0,
};

impl Core {
    /// Takes back an inode that could not get its name.
    pub(crate) fn unpublish(&self, node: Node) {
        if self.pinned {
            {
                let mut meta = node.inode().write();
                meta.nlink = 0;
                drop(node.inode().mark_freeing());
            }
            // An orphan: if a walk has met it, it ends with the walk's use.
            return self.put(node);
        }
        drop(node.inode().mark_freeing());
        if let Some(freeing) = node.into_inner().and_then(Ref::release) {
            self.index.free(freeing);
        }
        // A store that has heard of it answered with an error, or has no room for the name.
        self.behind.release(AN_INODE);
    }

    /// Puts a finished inode where others find it by number, counted if quotas are on: from then on it has the
    /// inode that was reserved.
    ///
    /// # Errors
    /// `EDQUOT` if its owner may have no more; `EUCLEAN` if its number is in use: then somebody
    /// dealt it twice.
    pub(crate) fn publish(
        &self,
        ino: Ino,
        inode: Prepared<Object>,
        check: Check,
        reservation: &mut Reservation<'_>,
    ) -> Result<Node> {
        let node = self.enroll(ino, inode, check)?;
        reservation.keep_inodes();
        self.doom_if_revoked(&node);
        Ok(node)
    }

    /// Counts a new inode and puts it into the index, under one guard: whoever switches quotas on
    /// or off meanwhile waits for it, and meets the inode.
    fn enroll(&self, ino: Ino, inode: Prepared<Object>, check: Check) -> Result<Node> {
        // Over other stores there are no quotas.
        let guard = self.pinned.then(epoch::pin);
        if let Some(guard) = &guard {
            let (mark, owner) = (inode.mark(), inode.owner());
            self.quotas.enroll(guard, mark, owner, check)?;
        }
        // Its number is new: nobody is waited for.
        self.index
            .publish_prepared(ino.0, inode)
            .map(Node::new)
            .map_err(|inode| {
                self.quotas.detach(inode.mark(), inode.owner(), 0);
                Errno::EUCLEAN
            })
    }
}
