//! Publishing a new inode in the index, and undoing it.

use holdfast_sync::Prepared;
use holdfast_sync::Ref;
use holdfast_sync::epoch;

use crate::core::Core;
use crate::inode::Object;
use crate::inodes::free::put_node;
use crate::node::Node;
use crate::primitive::{Ordering, fence};
use crate::quota::Check;
use crate::store::{Reservation, Space};
use crate::types::{Errno, Ino, Result};

/// Undoes [`publish_inode`] for an inode that could not get its name.
pub(crate) fn unpublish_inode(core: &Core, node: Node) {
    if core.pinned {
        {
            let mut meta = node.inode().write();
            meta.nlink = 0;
            drop(node.inode().mark_freeing());
        }
        // An orphan: if a walk holds a reference, the inode is freed with that.
        return put_node(core, node);
    }
    drop(node.inode().mark_freeing());
    if let Some(freeing) = node.into_inner().and_then(Ref::release) {
        core.index.free(freeing);
    }
    // The store has returned an error, or the name could not be inserted.
    core.behind.release(Space {
        inodes: 1,
        ..Space::default()
    });
}

/// Inserts a complete inode into the index, and charges it if quotas are on. It keeps the inode
/// of the reservation.
///
/// # Errors
/// `EDQUOT` if the owner's quota is exceeded; `EUCLEAN` if the number is in use, which means
/// that it was assigned twice.
pub(crate) fn publish_inode(
    core: &Core,
    ino: Ino,
    inode: Prepared<Object>,
    check: Check,
    reservation: &mut Reservation<'_>,
) -> Result<Node> {
    hop!();
    // Only stores that pin everything have quotas. A thread that switches them on or off waits
    // for the guard, and then finds the inode.
    let guard = core.pinned.then(epoch::pin);
    if let Some(guard) = &guard {
        let (mark, owner) = (inode.mark(), inode.owner());
        core.quotas.enroll(guard, mark, owner, check)?;
    }
    // The number is new, so the insertion never waits.
    let published = core.index.publish_prepared(ino.0, inode);
    let node = published.map(Node::new).map_err(|inode| {
        core.quotas.detach(inode.mark(), inode.owner(), 0);
        Errno::EUCLEAN
    })?;
    drop(guard);
    reservation.keep_inodes();
    mark_freeing_if_revoked(core, &node);
    Ok(node)
}

/// Marks an inode as freeing if the file system was revoked. It is called after an inode was added
/// to the index, or unmarked. Either the walk of [`revoke`](crate::FileSystem::revoke) comes after
/// that, or its mark is seen here.
pub(crate) fn mark_freeing_if_revoked(core: &Core, node: &Node) {
    if cfg!(not(target_arch = "x86_64")) {
        fence(Ordering::SeqCst);
    }
    if core.policy.revoked() {
        // The reference of `node` prevents the eviction.
        drop(node.inode().mark_freeing());
    }
}
