//! Taking a file system away from those who still use it: forced unmount.

use crate::FileSystem;
use crate::types::Result;

impl FileSystem {
    /// Ends the file system under its users: from now on every operation fails with `EIO`, on old
    /// handles too. Watchers are told; what is durable stays so; the rest is made durable first.
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
        let synced = self.sync();
        core.policy.revoke();
        // Who tracks inodes lets go first: nothing is searched on their behalf.
        core.watches.release_all();
        // The unsafe iterator: what is doomed here must not be in use because of us. An inode that
        // an operation creates just now is doomed by that operation, which sees the mark.
        core.scan_inodes((0, u64::MAX), &mut |inode| {
            // Its end, if this is it, is the next pass's.
            drop(inode.doom());
        });
        core.evict_unused((0, u64::MAX));
        core.index.trim();
        holdfast_sync::epoch::flush();
        synced
    }

    /// Was it revoked?
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.core.policy.revoked()
    }
}
