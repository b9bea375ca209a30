//! Forced unmount.

use crate::FileSystem;
use crate::inodes::evict::evict_unused;
use crate::inodes::free::{forget_names, release_names};
use crate::inodes::shards::{drop_in_shards, in_shards};
use crate::inodes::walk::scan_inodes;
use crate::lifecycle::sync::make_durable;
use crate::types::Result;

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
