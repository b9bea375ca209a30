//! Letting go of all that the store can bring back, at a caller's wish.

use crate::FileSystem;
use crate::file_system::Core;
use crate::inodes::{Dropped, InodeWalk};
use crate::types::Result;

impl FileSystem {
    /// Lets go of every inode that nobody uses and that the store can bring back, with its names
    /// and its content, and of the content of the others. Over a store that pins everything, such as
    /// memory, there is none. Where there are many, several threads do it.
    ///
    /// # Errors
    /// `EIO` when what has not reached the store cannot be written; the inodes stay then.
    pub fn drop_caches(&self) -> Result<Dropped> {
        self.drop_by(Core::write_all_times, |core| {
            core.drop_in_shards(|range| core.drop_range(range))
        })
    }

    /// As [`FileSystem::drop_caches`], for those inodes only that this walk would meet, on this thread.
    ///
    /// # Errors
    /// As [`FileSystem::drop_caches`].
    pub fn drop_walked(&self, walk: InodeWalk) -> Result<Dropped> {
        let rest = walk.rest();
        self.drop_by(
            |core| match core.lazytime.any() {
                true => core.write_times_of(walk),
                false => Ok(()),
            },
            |core| rest.map_or_else(Dropped::default, |range| core.drop_range(range)),
        )
    }

    fn drop_by(
        &self,
        write_times: impl FnOnce(&Core) -> Result<()>,
        evict: impl FnOnce(&Core) -> Dropped,
    ) -> Result<Dropped> {
        if self.core.pinned {
            return Ok(Dropped::default());
        }
        write_times(&self.core)?;
        let dropped = evict(&self.core);
        self.core.index.trim();
        holdfast_sync::epoch::flush();
        Ok(dropped)
    }
}
