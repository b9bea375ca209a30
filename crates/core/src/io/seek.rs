use holdfast_cache::Contended;

use crate::FileSystem;
use crate::io::populate::lock_mapped;
use crate::open_file::OpenFile;
use crate::shared::refresh_inode;
use crate::types::{Errno, OpenFlags, Result, Whence};

impl FileSystem {
    /// The first byte of data, or of a hole (the end counts as one), at or after `offset`.
    ///
    /// # Errors
    /// `ENXIO` if `offset` is at or behind the end, or only a hole follows; `EBADF`; `EINVAL` for
    /// what is not a regular file.
    pub fn seek(&self, file: &OpenFile, offset: u64, whence: Whence) -> Result<u64> {
        if file.flags().contains(OpenFlags::PATH) {
            return Err(Errno::EBADF);
        }
        self.core.alive()?;
        let inode = file.node().inode();
        let pages = inode.regular().map_err(|_| Errno::EINVAL)?;
        refresh_inode(&self.core, inode)?;
        let (size, whole) = (|| inode.size(), || inode.is_complete());
        let found = match whence {
            Whence::Data => pages.seek_data(offset, size, whole),
            Whence::Hole => pages.seek_hole(offset, size, whole),
        };
        let found = match found {
            Ok(found) => found,
            Err(Contended) => {
                let pages = lock_mapped(&self.core, inode, pages)?;
                match whence {
                    Whence::Data => pages.seek_data(offset, inode.size()),
                    Whence::Hole => pages.seek_hole(offset, inode.size()),
                }
            }
        };
        found.ok_or(Errno::ENXIO)
    }
}
