//! The bytes of regular files.
//!
//! *Invariant.* What is in memory of a file, and what the store answers for it, is the same whenever the lock of the pages is free: so it is
//! held while the store writes. Nothing is kept of what was written but in the store, which is asked for it by the next reader.

use std::io::IoSlice;

use super::ThroughStore;
use super::take_in::Changed;
use crate::open::OpenFile;
use crate::store::Operation;
use crate::types::{Caller, Errno, Fallocate, OpenFlags, Result};
use crate::watch::EventMask;

/// Bytes that a copy reads and writes at once, where the store does not copy.
const COPY_PART: u64 = 1 << 20;

impl ThroughStore<'_> {
    /// Writes bytes to a file that is open for writing; returns where they begin, and how many were written. `offset` absent: at the end.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn write(
        self,
        who: &Caller,
        file: &OpenFile,
        offset: Option<u64>,
        bufs: &[IoSlice<'_>],
    ) -> Result<(u64, usize)> {
        let (core, node) = (self.core, file.node());
        let (inode, ino) = (node.inode(), node.ino());
        let pages = inode.regular()?;
        if bufs.iter().all(|buf| buf.is_empty()) {
            return Ok((offset.unwrap_or(inode.size()), 0));
        }
        inode.allow_writing(offset)?;
        core.drop_privileges(who, node)?;
        let write = Operation::Write { ino, offset, bufs };
        let (start, count, stands) = {
            let mut pages = pages.lock();
            let done = self.perform(who, &write)?;
            let end = done.start.saturating_add(done.count);
            let told = self.touched(&done, ino).and_then(|(touched, at)| {
                let written = done.start..end;
                self.take_in_written(inode, &mut pages, (&touched, at), written)
            });
            let stands = told.inspect_err(|_| self.take_in_nothing(inode, &mut pages))?;
            (done.start, done.count, stands)
        };
        self.tell_of_others(inode, stands);
        core.notify_event(inode, EventMask::MODIFY);
        core.notify_inode(who, ino, true);
        if file.flags().intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
            self.sync(file, !file.flags().contains(OpenFlags::SYNC))?;
        }
        Ok((start, usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// Does to a range of a file what the mode says, which makes sense.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn allocate(
        self,
        who: &Caller,
        file: &OpenFile,
        mode: Fallocate,
        (offset, len): (u64, u64),
    ) -> Result<()> {
        let (core, node) = (self.core, file.node());
        core.drop_privileges(who, node)?;
        let allocate = Operation::Allocate {
            ino: node.ino(),
            mode,
            offset,
            len,
        };
        self.change(who, node, &allocate, Changed::Content)?;
        core.notify_event(node.inode(), EventMask::MODIFY);
        core.notify_inode(who, node.ino(), true);
        Ok(())
    }

    /// Copies bytes between two places that do not overlap; returns how many, fewer at the end of the source.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn copy(
        self,
        who: &Caller,
        (from, from_offset): (&OpenFile, u64),
        (to, to_offset): (&OpenFile, u64),
        len: u64,
    ) -> Result<u64> {
        let (core, node) = (self.core, to.node());
        core.refresh(from.node().inode())?;
        let size = from.node().inode().size();
        let len = len.min(size.saturating_sub(from_offset));
        if len == 0 {
            return Ok(0);
        }
        if from.node() == node && from_offset.abs_diff(to_offset) < len {
            return Err(Errno::EINVAL);
        }
        core.drop_privileges(who, node)?;
        let copy = Operation::Copy {
            from: (from.node().ino(), from_offset),
            to: (node.ino(), to_offset),
            len,
        };
        let done = match self.perform(who, &copy) {
            Err(Errno::EOPNOTSUPP | Errno::EXDEV | Errno::ENOSYS) => {
                return self.copy_by_hand(who, (from, from_offset), (to, to_offset), len);
            }
            done => done?,
        };
        let (touched, at) = self.touched(&done, node.ino())?;
        self.take_in(node.inode(), &touched, at, Changed::Content)?;
        Ok(done.count)
    }

    fn copy_by_hand(
        self,
        who: &Caller,
        (from, from_offset): (&OpenFile, u64),
        (to, to_offset): (&OpenFile, u64),
        len: u64,
    ) -> Result<u64> {
        let mut done = 0;
        let mut buf = vec![0; COPY_PART.min(len) as usize];
        while done < len {
            let part = usize::try_from(len - done).unwrap_or(usize::MAX);
            let part = part.min(buf.len());
            let copied = self
                .core
                .read_otherwise(from, from_offset + done, &mut buf[..part])
                .and_then(|read| {
                    let bufs = [IoSlice::new(&buf[..read])];
                    self.write(who, to, Some(to_offset + done), &bufs)
                });
            match copied {
                Ok((_, 0)) => break,
                Ok((_, written)) => done += written as u64,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Makes a file durable.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn sync(self, file: &OpenFile, data_only: bool) -> Result<()> {
        let ino = file.node().ino();
        let sync = Operation::Sync { ino, data_only };
        self.core.alive()?;
        self.store.perform(&super::itself(), &sync).map(drop)
    }

    /// A descriptor of an open file is closed.
    ///
    /// # Errors
    /// What the store put off and could not do.
    pub(crate) fn flush(self, file: &OpenFile) -> Result<()> {
        if !file.is_written_through() {
            return Ok(());
        }
        let ino = file.node().ino();
        let flush = Operation::Flush { ino };
        self.store.perform(&super::itself(), &flush).map(drop)
    }
}
