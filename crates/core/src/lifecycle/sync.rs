//! What makes a file system durable, and its end.

use crate::FileSystem;
use crate::core::Core;
use crate::inodes::evict::write_times;
use crate::types::Result;

impl FileSystem {
    /// Makes all earlier changes durable, as far as the store can (syncfs(2)).
    ///
    /// # Errors
    /// `EIO` when it could not.
    pub fn sync(&self) -> Result<()> {
        self.core.alive()?;
        write_times(&self.core)?;
        self.core.store.commit(None)
    }

    /// Ends a file system at unmount: makes everything durable that only this file system can
    /// write, and notifies all watchers. Handles that are still held go on working. A revoked file
    /// system is closed, too: operations that ended since then are durable afterwards.
    ///
    /// # Errors
    /// `EIO` when it could not be made durable; the watchers are notified all the same.
    pub fn close(&self) -> Result<()> {
        let synced = make_durable(&self.core);
        self.core.watches.release_all();
        synced
    }
}

/// Hands over deferred changes, and makes everything durable. A store that is written through
/// has all of them already, and may not answer any more.
pub(crate) fn make_durable(core: &Core) -> Result<()> {
    if core.through.is_some() {
        return Ok(());
    }
    write_times(core)?;
    core.store.commit(None)
}
