//! Space and holes.

use std::io;

use super::File;
use crate::types::{Errno, Fallocate, Whence};
use crate::view::View;

impl File {
    /// fallocate(2): allocates, frees, zeroes, removes or inserts a range, as `mode` says; no bit
    /// set allocates, and extends the file where the range reaches beyond its end.
    ///
    /// # Errors
    /// `EINVAL` for an empty range, or one that COLLAPSE or INSERT cannot take; `EOPNOTSUPP` for
    /// modes that contradict; `EBADF`; `ENOSPC`: then nothing changed; `EFBIG`.
    pub fn fallocate(&self, mode: Fallocate, offset: u64, len: u64) -> io::Result<()> {
        let View { core, who } = self.view();
        Ok(core.fallocate(who, self.core_file(), mode, offset, len)?)
    }

    /// Frees the space of a range, which then reads as zeros; the length stays.
    ///
    /// ```
    /// use holdfast::FileSystem;
    ///
    /// let fs = FileSystem::memory();
    /// let file = fs.create("/sparse")?;
    /// file.write_all_at(&[7; 3 * 4096], 0)?;
    /// file.punch_hole(4096, 4096)?;
    /// assert_eq!(file.seek_hole(0)?, Some(4096));
    /// assert_eq!(file.seek_data(4096)?, Some(8192));
    /// assert_eq!(file.metadata()?.blocks(), 16);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`File::fallocate`].
    pub fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        self.fallocate(Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE, offset, len)
    }

    /// The first byte of data at or after `offset`; `None` if no data follows. The file's offset
    /// stays.
    ///
    /// # Errors
    /// `EINVAL` for what is not a regular file.
    pub fn seek_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.find(offset, Whence::Data)
    }

    /// The first byte of a hole at or after `offset`; the end of the file counts as a hole. `None`
    /// if `offset` is at or after the end. The file's offset stays.
    ///
    /// # Errors
    /// As [`File::seek_data`].
    pub fn seek_hole(&self, offset: u64) -> io::Result<Option<u64>> {
        self.find(offset, Whence::Hole)
    }

    fn find(&self, offset: u64, whence: Whence) -> io::Result<Option<u64>> {
        match self.view().core.seek(self.core_file(), offset, whence) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::ENXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
