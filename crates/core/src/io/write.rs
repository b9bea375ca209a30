use holdfast_cache::{Arrival, Pages, PagesLock};
use std::io::IoSlice;

use super::populate::PAGE;
use super::{SIZE_MAX, check_range, writable};
use crate::FileSystem;
use crate::file_system::{Core, Scope};
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::log_order::Taken;
use crate::open::OpenFile;
use crate::quota::Check;
use crate::space::FileSpace;
use crate::store::{Change, Class, Intent, Reservation};
use crate::types::{Caller, Errno, OpenFlags, Result};
use crate::watch::EventMask;

impl FileSystem {
    /// Writes at `offset` (at the end, if the file is open for appending); returns the bytes
    /// written, fewer than given when space ran out or the largest size was reached.
    ///
    /// # Errors
    /// `EBADF` if not open for writing; `ENOSPC`, `EDQUOT`; `EFBIG` at the largest size;
    /// `EINVAL` for an offset beyond 2^63 - 1; `EROFS`; `EPERM` if the file is immutable, or only appended to and this is not
    /// behind its end.
    pub fn write(&self, who: &Caller, file: &OpenFile, offset: u64, data: &[u8]) -> Result<usize> {
        self.write_vectored(who, file, offset, &[IoSlice::new(data)])
    }

    /// Writes several buffers in turn, as one write.
    ///
    /// # Errors
    /// As [`FileSystem::write`].
    pub fn write_vectored(
        &self,
        who: &Caller,
        file: &OpenFile,
        offset: u64,
        bufs: &[IoSlice<'_>],
    ) -> Result<usize> {
        if !file.flags().writable() {
            return Err(Errno::EBADF);
        }
        // The offset is judged even where it is ignored.
        check_range(offset, total(bufs))?;
        let offset = Some(offset).filter(|_| !file.flags().contains(OpenFlags::APPEND));
        self.write_somewhere(who, file, offset, bufs)
            .map(|(_, written)| written)
    }

    /// Writes at the end, whatever other writers do; returns where, and the bytes written.
    ///
    /// # Errors
    /// As [`FileSystem::write`].
    pub fn append(&self, who: &Caller, file: &OpenFile, data: &[u8]) -> Result<(u64, usize)> {
        self.write_somewhere(who, file, None, &[IoSlice::new(data)])
    }

    /// `offset` absent: at the end.
    fn write_somewhere(
        &self,
        who: &Caller,
        file: &OpenFile,
        offset: Option<u64>,
        bufs: &[IoSlice<'_>],
    ) -> Result<(u64, usize)> {
        let core = &self.core;
        let pages = writable(file)?;
        let given = total(bufs);
        check_range(0, given)?;
        core.writable()?;
        if let Some(through) = core.through() {
            if offset.is_some_and(|start| start >= SIZE_MAX) && given > 0 {
                return Err(Errno::EFBIG);
            }
            return through.write(who, file, offset, bufs);
        }
        let inode = file.node().inode();
        if given == 0 {
            return Ok((offset.unwrap_or(inode.size()), 0));
        }
        let held = core.cached();
        let (start, done) = {
            let (mut pages, past) = core.lock_to_write(inode, pages, offset, bufs)?;
            let size = inode.size();
            let start = offset.unwrap_or(size);
            let end = start.saturating_add(given as u64);
            let mut reservation = core.reserve_for(inode, &pages, start..end, || {
                core.intent_to_write(size, start, given as u64)
            })?;
            core.drop_privileges(who, file.node())?;
            let space = core.space_of(inode, Check::of(who));
            let done = if past {
                // Nothing changes in memory: readers of this page take the lock, and read it anew.
                pages.change_absent(start / PAGE..start / PAGE + 1);
                given
            } else {
                core.write_in_memory(inode, &mut pages, start, bufs, &space)?
            };
            let turn = core.log_order([inode]);
            let (end, now) = (start + done as u64, inode.time_of_change());
            // Most come in the same tick of the clock as the one before, and leave the attributes as they are.
            if inode.size() < end || !inode.is_modified(now) {
                let mut meta = inode.write();
                meta.size = meta.size.max(end);
                meta.modified(now);
            }
            pages.has_size(inode.size());
            if !core.pinned {
                space.hand_over(&mut reservation);
                let written = (start, done);
                core.hand_over_written(turn, &mut reservation, inode, &pages, bufs, written)?;
            }
            (start, done)
        };
        core.notify_event(inode, EventMask::MODIFY);
        core.notify_inode(who, inode.ino(), true);
        core.relieve_since(held);
        if file.flags().intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
            core.commit_for(file)?;
        }
        Ok((start, done))
    }

    /// Makes a file durable, as far as the store can; `data_only`: what reading it back needs.
    ///
    /// # Errors
    /// `EBADF` for a handle to the name only. When it could not be made durable: the reason, once to each open
    /// file, then `EIO`.
    pub fn fsync(&self, file: &OpenFile, data_only: bool) -> Result<()> {
        if file.flags().contains(OpenFlags::PATH) {
            return Err(Errno::EBADF);
        }
        self.core.alive()?;
        if let Some(through) = self.core.through() {
            return through.sync(file, data_only);
        }
        if !data_only {
            self.core.write_time(file.node().inode())?;
        }
        // Stores take changes in one order: whatever this file needs lies before this point.
        self.core.commit_for(file)
    }

    /// One of the descriptors of an open file is closed.
    ///
    /// # Errors
    /// Why the store failed, if the file is open for writing, was so when that happened, and has not been told: what
    /// was written may be lost. What a store that is written through put off, and could not do.
    pub fn flush(&self, file: &OpenFile) -> Result<()> {
        if let Some(through) = self.core.through() {
            return through.flush(file);
        }
        self.core.tell_failure(file)
    }
}

impl Core {
    /// What writing to a file of this size may take, besides space for pages that have none, which is asked for
    /// when they are met.
    pub(super) fn intent_to_write(&self, size: u64, start: u64, len: u64) -> Intent {
        let end = start.saturating_add(len);
        let class = match end > size {
            true => Class::Growing,
            false => Class::Changing,
        };
        Intent {
            class,
            ranges: 1,
            records: 1,
            moved: self.outgrown(size, end),
            ..Intent::default()
        }
        .writing(start, len, size)
    }

    /// Locks the pages of a file once nothing is missing that a write needs. Does the write
    /// [go past memory](Self::goes_past)?
    #[inline]
    fn lock_to_write<'p>(
        &self,
        inode: &Inode,
        body: &'p Pages,
        offset: Option<u64>,
        bufs: &[IoSlice<'_>],
    ) -> Result<(PagesLock<'p>, bool)> {
        let mut past = false;
        let pages = self.lock_with(inode, body, |pages| {
            let start = offset.unwrap_or(inode.size());
            inode.allow_writing(offset)?;
            if start >= SIZE_MAX {
                return Err(Errno::EFBIG);
            }
            if self.pinned || inode.is_complete() {
                past = false;
                return Ok(None);
            }
            let end = start.saturating_add(total(bufs) as u64);
            past = bufs.len() == 1 && self.goes_past(inode, pages, start..end);
            let lens = bufs.iter().map(|buf| buf.len());
            Ok(match past {
                true => None,
                false => self.missing_edges(inode, pages, start, lens),
            })
        })?;
        Ok((pages, past))
    }

    /// Writes to pages of which nothing is missing; returns the bytes written.
    fn write_in_memory(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        start: u64,
        bufs: &[IoSlice<'_>],
        space: &FileSpace<'_>,
    ) -> Result<usize> {
        let size = inode.size();
        if bufs.len() > 1 && start < size {
            // Several pieces are one write.
            pages.begin();
        }
        if !self.pinned && start.saturating_add(total(bufs) as u64) > WHOLE {
            pages.stamp(self.reclaim.epochs.epoch(), Arrival::Used);
        }
        let mut done = 0;
        for buf in bufs.iter().filter(|buf| !buf.is_empty()) {
            let at = start + done as u64;
            let room = usize::try_from(SIZE_MAX - at).unwrap_or(usize::MAX);
            let data = &buf[..buf.len().min(room)];
            let written = match pages.write_alone(at, data, size, space.account()) {
                Ok(written) => written,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            done += written;
            if written < buf.len() {
                break;
            }
        }
        Ok(done)
    }

    /// Hands bytes of a file that were written to the store: where they begin, and how many of these.
    fn hand_over_written(
        &self,
        turn: Option<Taken<'_, 1>>,
        reservation: &mut Reservation<'_>,
        inode: &Inode,
        pages: &PagesLock<'_>,
        bufs: &[IoSlice<'_>],
        (start, done): (u64, usize),
    ) -> Result<()> {
        let ino = inode.ino();
        let write = |offset, data| Change::Write { ino, offset, data };
        let page = |page| pages.show(page);
        // In their turn, so that they are the latest.
        let attributes = || Change::Attributes {
            inode: inode.record(&inode.meta()),
        };
        let held = reservation.held();
        if let [buf] = bufs {
            return self.in_log_order(turn, Scope::Inodes, || {
                let batch = [attributes(), write(start, &buf[..done])];
                self.accept_written(held, &batch, &page)
            });
        }
        let mut batch = vec![attributes()];
        let (mut at, mut left) = (start, done);
        for buf in bufs {
            let data = &buf[..buf.len().min(left)];
            if !data.is_empty() {
                batch.push(write(at, data));
            }
            at += data.len() as u64;
            left -= data.len();
        }
        self.apply_written(turn, held, inode, &batch, &page)
    }
}

fn total(bufs: &[IoSlice<'_>]) -> usize {
    bufs.iter()
        .fold(0, |sum, buf| sum.saturating_add(buf.len()))
}
