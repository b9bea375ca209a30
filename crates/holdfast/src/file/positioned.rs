//! Reading and writing at offsets, as `std::os::unix::fs::FileExt`, without a change of the file's
//! own offset.

use std::io::{self, IoSlice, IoSliceMut};

use super::File;
use crate::view::View;

impl File {
    /// Reads at `offset`; fewer bytes than asked for only at the end.
    ///
    /// # Errors
    /// `EBADF` if not open for reading; `EISDIR`; `EINVAL` beyond 2^63 - 1.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.view().core.read(self.core_file(), offset, buf)?)
    }

    /// Reads at `offset` into several buffers in turn, all from one state of the file.
    ///
    /// # Errors
    /// As [`File::read_at`].
    pub fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let core = &self.view().core;
        Ok(core.read_vectored(self.core_file(), offset, bufs)?)
    }

    /// Fills the buffer from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before; otherwise as [`File::read_at`].
    pub fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            let read = self.read_at(buf, offset)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buf = &mut buf[read..];
            offset += read as u64;
        }
        Ok(())
    }

    /// Writes at `offset`; in a file open for appending at its end, as pwrite(2) does on Linux.
    /// Fewer bytes than given only when space runs out.
    ///
    /// # Errors
    /// `EBADF` if not open for writing; `ENOSPC`; `EFBIG`; `EINVAL` beyond 2^63 - 1; `EROFS`.
    pub fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let View { core, who } = self.view();
        Ok(core.write(who, self.core_file(), offset, buf)?)
    }

    /// Writes several buffers in turn, as one write.
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let View { core, who } = self.view();
        Ok(core.write_vectored(who, self.core_file(), offset, bufs)?)
    }

    /// Writes the whole buffer from `offset` on.
    ///
    /// # Errors
    /// As [`File::write_at`]; part of the buffer may have been written.
    pub fn write_all_at(&self, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            let written = self.write_at(buf, offset)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            buf = &buf[written..];
            offset += written as u64;
        }
        Ok(())
    }

    /// Copies `len` bytes at `from` to the offset `to` of another file (or this one), as
    /// copy_file_range(2): holes stay holes. Returns the bytes copied, fewer at the end of this
    /// file or when one call is not enough for so many; 0 at the end.
    ///
    /// # Errors
    /// `EXDEV` for a file of another file system; `EBADF` without the access, or for a target
    /// open for appending; `EINVAL` for ranges that overlap; `ENOSPC`.
    pub fn copy_range_to(&self, from: u64, target: &Self, to: u64, len: u64) -> io::Result<u64> {
        self.view().same_file_system(target.view())?;
        let View { core, who } = self.view();
        let (source, target) = (self.core_file(), target.core_file());
        Ok(core.copy_file_range(who, source, from, target, to, len)?)
    }
}
