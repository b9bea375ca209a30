use crate::FileSystem;
use crate::open::OpenFile;
use crate::types::{Errno, OpenFlags, Result, Whence};

impl FileSystem {
    /// The first byte of data, or of a hole (the end counts as one), at or behind `offset`.
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
        self.core.complete_pages(inode, pages)?;
        let pages = pages.lock();
        let size = inode.size();
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        match whence {
            Whence::Data => pages.seek_data(offset, size),
            Whence::Hole => pages.seek_hole(offset, size),
        }
        .ok_or(Errno::ENXIO)
    }
}
