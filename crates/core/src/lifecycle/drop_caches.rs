//! Dropping of caches at a caller's request.

use crate::FileSystem;
use crate::inodes::Dropped;
use crate::inodes::evict::{drop_inodes, write_times};
use crate::inodes::shards::drop_in_shards;
use crate::types::Result;

impl FileSystem {
    /// Drops every unused inode that the store can load again, with its names and its content, and
    /// the content of the other inodes. Over a store that pins everything, such as memory, there is
    /// none. If there are many, several threads do it.
    ///
    /// # Errors
    /// `EIO` when unwritten changes cannot be written; the inodes stay then.
    pub fn drop_caches(&self) -> Result<Dropped> {
        let core = &self.core;
        if core.pinned {
            return Ok(Dropped::default());
        }
        write_times(core)?;
        let dropped = drop_in_shards(core, |range| drop_inodes(core, range));
        core.index.trim();
        holdfast_sync::epoch::flush();
        Ok(dropped)
    }
}
