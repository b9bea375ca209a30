use std::io::IoSliceMut;

use super::{check_range, readable};
use crate::FileSystem;
use crate::open::OpenFile;
use crate::types::{Errno, OpenFlags, Result};
use crate::watch::EventMask;

impl FileSystem {
    /// Reads at `offset`; returns the bytes read, fewer than asked for only at the file's end.
    ///
    /// # Errors
    /// `EBADF` if not open for reading, `EISDIR`, `EINVAL` for an offset beyond 2^63 - 1.
    pub fn read(&self, file: &OpenFile, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.read_vectored(file, offset, &mut [IoSliceMut::new(buf)])
    }

    /// Reads at `offset` into several buffers in turn, all from one state of the file.
    ///
    /// # Errors
    /// As [`FileSystem::read`].
    pub fn read_vectored(
        &self,
        file: &OpenFile,
        offset: u64,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Result<usize> {
        let core = &self.core;
        core.alive()?;
        if !file.flags().readable() {
            return Err(Errno::EBADF);
        }
        let asked = bufs
            .iter()
            .fold(0_usize, |sum, buf| sum.saturating_add(buf.len()));
        check_range(offset, asked)?;
        let body = readable(file)?;
        let inode = file.node().inode();
        core.complete_pages(inode, body)?;
        let mut done = 0;
        {
            let pages = body.pages.read();
            let size = inode.meta().size;
            for buf in bufs {
                let read = pages.read(offset + done as u64, buf, size);
                done += read;
                if read < buf.len() {
                    break;
                }
            }
        }
        if !file.flags().contains(OpenFlags::NOATIME) {
            core.accessed(inode);
        }
        core.happened(inode, EventMask::ACCESS);
        Ok(done)
    }
}
