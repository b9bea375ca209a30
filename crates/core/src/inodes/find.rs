//! Inodes that are in memory, by number.

use crate::core::Core;
use crate::inode::Inode;
use crate::node::Node;
use crate::types::{Errno, Ino, Result};
use holdfast_sync::epoch;
use holdfast_sync::epoch::Guard;

/// Is an inode of this number in memory?
pub(crate) fn has_inode(core: &Core, ino: Ino) -> bool {
    core.index.peek(ino.0, &epoch::pin()).is_some()
}

/// The inode with this number, and references it; `None`: it has to be loaded.
///
/// # Errors
/// `ESTALE` if there is none; `EIO` if the file system was revoked.
#[inline]
pub(crate) fn node_in_memory(core: &Core, ino: Ino) -> Result<Option<Node>> {
    core.alive()?;
    if let Some(inode) = core.index.get(ino.0) {
        let node = Node::new(inode);
        node.inode().touch(&core.reclaim.epochs);
        if node.inode().is_new() {
            return Err(Errno::ESTALE);
        }
        if node.inode().is_marked_freeing() {
            keep_inode(core, &node);
        }
        return Ok(Some(node));
    }
    // Or it was evicted by a concurrent revocation.
    core.alive()?;
    Ok(None)
}

/// Keeps an inode that was loaded for a single use: another caller asks for it.
#[cold]
pub(crate) fn keep_inode(core: &Core, node: &Node) {
    let meta = node.inode().write();
    if meta.nlink > 0 && !core.policy.revoked() {
        node.inode().unmark_freeing();
        // Either the mark is seen here, or the walk of `FileSystem::revoke` comes later.
        if core.policy.revoked() {
            drop(node.inode().mark_freeing());
        }
    }
}

/// The inode of this number, if it is in memory and live.
pub(crate) fn live_inode<'g>(core: &'g Core, ino: Ino, guard: &'g Guard) -> Option<&'g Inode> {
    core.index
        .peek(ino.0, guard)
        .filter(|inode| inode.is_live() && !inode.is_new())
}
