use holdfast_cache::{Contended, Pages};
use holdfast_sync::epoch;
use std::io::IoSliceMut;

use super::check_range;
use crate::FileSystem;
use crate::file_system::Core;
use crate::inode::Inode;
use crate::open::OpenFile;
use crate::types::{Errno, OpenFlags, Result};
use crate::watch::EventMask;

impl FileSystem {
    /// Reads at `offset`; returns the bytes read, fewer than asked for only at the file's end.
    ///
    /// # Errors
    /// `EBADF` if not open for reading, `EISDIR`, `EINVAL` for an offset beyond 2^63 - 1.
    pub fn read(&self, file: &OpenFile, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let (inode, pages) = self.core.readable_at(file, offset, buf.len())?;
        let done = match pages.read_with(offset, buf, || inode.size()) {
            Ok(done) => done,
            Err(Contended) => pages.lock().read(offset, buf, inode.size()),
        };
        self.core.has_read(file, inode);
        Ok(done)
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
        let asked = bufs
            .iter()
            .fold(0_usize, |sum, buf| sum.saturating_add(buf.len()));
        let (inode, pages) = self.core.readable_at(file, offset, asked)?;
        let unlocked = pages.read_vectored_under(&epoch::pin(), offset, bufs, || inode.size());
        let done = unlocked.unwrap_or_else(|Contended| {
            let pages = pages.lock();
            let size = inode.size();
            let mut done = 0;
            for buf in bufs {
                let read = pages.read(offset + done as u64, buf, size);
                done += read;
                if read < buf.len() {
                    break;
                }
            }
            done
        });
        self.core.has_read(file, inode);
        Ok(done)
    }
}

impl Core {
    /// What is to be read from, all of it in memory.
    #[inline]
    fn readable_at<'f>(
        &self,
        file: &'f OpenFile,
        offset: u64,
        len: usize,
    ) -> Result<(&'f Inode, &'f Pages)> {
        self.alive()?;
        if !file.flags().readable() {
            return Err(Errno::EBADF);
        }
        check_range(offset, len)?;
        let inode = file.node().inode();
        let pages = inode.regular()?;
        self.complete_pages(inode, pages)?;
        Ok((inode, pages))
    }

    /// Whoever must hear of a read hears of it.
    #[inline]
    fn has_read(&self, file: &OpenFile, inode: &Inode) {
        if !file.flags().contains(OpenFlags::NOATIME) {
            self.accessed(inode);
        }
        self.happened(inode, EventMask::ACCESS);
    }
}
