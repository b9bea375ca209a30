//! Taking a file system away from those who still use it: forced unmount.

use std::sync::atomic::{Ordering, fence};

use crate::FileSystem;
use crate::file_system::Core;
use crate::node::Node;
use crate::types::{Errno, Result};

impl FileSystem {
    /// Ends the file system under its users: from now on every operation fails with `EIO`, on old
    /// handles too. Watchers are told; locks are released, and waits for them end with `EIO`; what is
    /// durable stays so; the rest is made durable first.
    ///
    /// Open files and nodes can still be closed and dropped, at any later time, and each gives back
    /// what it held: content belongs to the open file, not to the file system's caches. What nobody
    /// uses goes at once.
    ///
    /// # Errors
    /// `EIO` when what was done before could not be made durable. The file system is revoked all
    /// the same.
    pub fn revoke(&self) -> Result<()> {
        let core = &self.core;
        if core.policy.revoked() {
            return Ok(());
        }
        let synced = core.make_durable();
        core.policy.revoke();
        // Who tracks inodes lets go first: nothing is searched on their behalf.
        core.watches.release_all();
        // Nobody can switch them on again, so marks may stay.
        core.quotas.switch_off(|| ());
        // The unsafe iterator: what is doomed here must not be in use because of us. An inode that
        // an operation creates just now is doomed by that operation, which sees the mark.
        core.in_shards(|range| {
            core.scan_inodes(range, &mut |inode| {
                if let Some(locks) = inode.locks() {
                    locks.end(&core.lock_graph);
                }
                // Its end, if this is it, is the next pass's.
                drop(inode.mark_freeing());
            });
        });
        core.drop_in_shards(|range| core.evict_unused(range));
        if let Some(root) = core.root.get() {
            // It stays as long as the file system, but nobody looks into it any more.
            core.forget_names(root.inode());
        }
        core.index.trim();
        holdfast_sync::epoch::flush();
        // What ended between the first time and the mark was still answered with success.
        let rest = core.make_durable();
        synced.and(rest)
    }

    /// Was it revoked?
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.core.policy.revoked()
    }
}

impl Core {
    /// Dooms an inode if the file system was revoked: to be called when one has come into the
    /// index, or was spared. That comes before this look: either the walk of
    /// [`FileSystem::revoke`] comes later, or its mark is seen here.
    pub(crate) fn doom_if_revoked(&self, node: &Node) {
        if cfg!(not(target_arch = "x86_64")) {
            fence(Ordering::SeqCst);
        }
        if self.policy.revoked() {
            // Not its end: `node` is a use.
            drop(node.inode().mark_freeing());
        }
    }

    /// What a name is that was not found: a revoked file system has no names, which is no answer.
    #[inline]
    pub(crate) fn absent(&self) -> Errno {
        self.alive().err().unwrap_or(Errno::ENOENT)
    }
}
