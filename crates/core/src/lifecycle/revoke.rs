//! Forced unmount.

use std::sync::atomic::{Ordering, fence};

use crate::FileSystem;
use crate::core::Core;
use crate::inodes::evict::{evict_unused, forget_names, release_names};
use crate::inodes::shards::{drop_in_shards, in_shards};
use crate::inodes::walk::scan_inodes;
use crate::lifecycle::sync::make_durable;
use crate::node::Node;
use crate::types::{Errno, Result};

impl FileSystem {
    /// Ends the file system under its users: from now on every operation fails with `EIO`, also on
    /// old handles. Watchers are notified; locks are released, and waits for them fail with `EIO`.
    /// Earlier changes are made durable first.
    ///
    /// Open files and nodes can still be closed and dropped, at any later time. Each frees what it
    /// holds: content belongs to the open file, not to the file system's caches. Unused inodes are
    /// evicted at once.
    ///
    /// # Errors
    /// `EIO` when earlier changes could not be made durable. The file system is revoked all the
    /// same.
    pub fn revoke(&self) -> Result<()> {
        let core = &self.core;
        if core.policy.revoked() {
            return Ok(());
        }
        let synced = make_durable(core);
        core.policy.revoke();
        // Watches on inodes go first: then no eviction has to search for one.
        core.watches.release_all();
        // Quotas cannot be switched on again, so marks may stay.
        core.quotas.switch_off(|| ());
        // A scan without references: an inode that is marked here must not be referenced by this
        // walk. An inode that an operation creates concurrently is marked by that operation, which
        // sees that the file system is revoked.
        in_shards(core, |range| {
            scan_inodes(core, range, &mut |inode| {
                if let Some(locks) = inode.locks() {
                    locks.end(&core.lock_graph);
                }
                // If it is unused, the next pass evicts it.
                drop(inode.mark_freeing());
            });
        });
        drop_in_shards(core, |range| evict_unused(core, range));
        if let Some(root) = core.root.get() {
            // It stays as long as the file system, but its names are not used any more.
            if core.pinned {
                release_names(core, root.inode());
            }
            forget_names(core, root.inode());
        }
        core.index.trim();
        holdfast_sync::epoch::flush();
        // Operations that ended between the first commit and the mark returned success.
        let rest = make_durable(core);
        synced.and(rest)
    }

    /// Was it revoked?
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.core.policy.revoked()
    }
}

/// Marks an inode as freeing if the file system was revoked. It is called after an inode was
/// added to the index, or unmarked. Either the walk of [`FileSystem::revoke`] comes after that,
/// or its mark is seen here.
pub(crate) fn mark_freeing_if_revoked(core: &Core, node: &Node) {
    if cfg!(not(target_arch = "x86_64")) {
        fence(Ordering::SeqCst);
    }
    if core.policy.revoked() {
        // The reference of `node` prevents the eviction.
        drop(node.inode().mark_freeing());
    }
}

/// The error for a name that was not found: a revoked file system has no names, so it is not
/// `ENOENT`.
#[inline]
pub(crate) fn no_entry(core: &Core) -> Errno {
    core.alive().err().unwrap_or(Errno::ENOENT)
}
