use holdfast_cache::{Arrival, Pages, PagesLock};
use std::io::IoSlice;

use crate::FileSystem;
use crate::attributes::privileges::drop_privileges;
use crate::core::Core;
use crate::events::notify_event;
use crate::failure::{flush_for, sync_for, tell_failure};
use crate::inode::{Inode, Numbered as _, WHOLE};
use crate::inodes::free::write_time;
use crate::io::checks::{SIZE_MAX, check_range, writable};
use crate::io::pages::PAGE;
use crate::io::populate::{goes_past, lock_with, missing_edges};
use crate::io::reserve::outgrown;
use crate::notify::notify_inode;
use crate::open_file::OpenFile;
use crate::quota::Check;
use crate::reclaim::content::{cached_pages, shrink_content_since};
use crate::space::FileSpace;
use crate::store::{Change, Class, Intent, Operation};
use crate::transaction::{Begun, LockedTransaction, Transaction, begin_content};
use crate::types::{Caller, Errno, OpenFlags, Result};
use crate::watch::EventMask;

impl FileSystem {
    /// Writes at `offset`, or at the end if the file is open for appending. Returns the number of
    /// bytes written, less than given when space ran out or the largest size was reached.
    ///
    /// # Errors
    /// `EBADF` if not open for writing. `EFBIG` at the largest size, `EINVAL` for an offset beyond
    /// 2^63 - 1. `EPERM` if the file is immutable, or append-only and this is not an append.
    /// `ENOSPC`, `EDQUOT`, `EROFS`.
    pub fn write(&self, who: &Caller, file: &OpenFile, offset: u64, data: &[u8]) -> Result<usize> {
        self.write_vectored(who, file, offset, &[IoSlice::new(data)])
    }

    /// Writes several buffers in turn, as one write.
    ///
    /// # Errors
    /// Those of [`FileSystem::write`].
    pub fn write_vectored(
        &self,
        who: &Caller,
        file: &OpenFile,
        offset: u64,
        bufs: &[IoSlice<'_>],
    ) -> Result<usize> {
        hop!();
        if !file.flags().writable() {
            return Err(Errno::EBADF);
        }
        // The offset is checked even where it is ignored.
        check_range(offset, total(bufs))?;
        let offset = Some(offset).filter(|_| !file.flags().contains(OpenFlags::APPEND));
        write_file(&self.core, who, file, offset, bufs).map(|(_, written)| written)
    }

    /// Writes at the end, atomically with other writers; returns the offset and the number of bytes
    /// written.
    ///
    /// # Errors
    /// Those of [`FileSystem::write`].
    pub fn append(&self, who: &Caller, file: &OpenFile, data: &[u8]) -> Result<(u64, usize)> {
        write_file(&self.core, who, file, None, &[IoSlice::new(data)])
    }

    /// Makes a file durable, as far as the store can; `data_only`: the data, and the metadata that
    /// reading it back needs.
    ///
    /// # Errors
    /// `EBADF` for a handle to the name only. When it could not be made durable: the reason, once
    /// to each open file, then `EIO`.
    pub fn fsync(&self, file: &OpenFile, data_only: bool) -> Result<()> {
        hop!();
        if file.flags().contains(OpenFlags::PATH) {
            return Err(Errno::EBADF);
        }
        self.core.alive()?;
        sync_file(&self.core, file, data_only)
    }

    /// One of the descriptors of an open file is closed.
    ///
    /// # Errors
    /// The reason of the store's failure, if written data may be lost: once to each file that was
    /// open for writing then and still is. The same for bytes of this file that the store lost.
    /// Those of work that the store deferred.
    pub fn flush(&self, file: &OpenFile) -> Result<()> {
        let core = &self.core;
        if file.is_kept_for_writing() {
            flush_for(core, file)?;
        }
        tell_failure(core, file)
    }
}

/// Writes several buffers in turn, as one write; returns the offset and the number of bytes
/// written. `offset == None`: at the end.
///
/// # Errors
/// Those of [`FileSystem::write`].
pub(super) fn write_file(
    core: &Core,
    who: &Caller,
    file: &OpenFile,
    offset: Option<u64>,
    bufs: &[IoSlice<'_>],
) -> Result<(u64, usize)> {
    hop!();
    let pages = writable(file)?;
    let (inode, given) = (file.node().inode(), total(bufs));
    check_range(0, given)?;
    core.writable()?;
    if given == 0 {
        return Ok((offset.unwrap_or(inode.size()), 0));
    }
    let held = cached_pages(core);
    // Held while the store writes, until `follow_write` has dropped the old pages.
    let mut locked = None;
    let begun = begin_content(core, |through| {
        if offset.is_some_and(|start| start >= SIZE_MAX) {
            return Err(Errno::EFBIG);
        }
        inode.allow_writing(offset)?;
        drop_privileges(core, who, file.node())?;
        locked = Some(pages.lock());
        let ino = inode.ino();
        through.perform(who, &Operation::Write { ino, offset, bufs })
    });
    let written = match begun? {
        Begun::Done(performed) => performed.follow_write(inode, locked)?,
        Begun::Decide(transaction) => write_and_commit(core, who, transaction, file, offset, bufs)?,
    };
    notify_event(core, inode, EventMask::MODIFY);
    notify_inode(core, who, inode.ino(), true);
    shrink_content_since(core, held);
    if file.flags().intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
        sync_file(core, file, !file.flags().contains(OpenFlags::SYNC))?;
    }
    Ok(written)
}

/// Writes to the pages in memory, and commits that.
fn write_and_commit(
    core: &Core,
    who: &Caller,
    mut transaction: Transaction<'_>,
    file: &OpenFile,
    offset: Option<u64>,
    bufs: &[IoSlice<'_>],
) -> Result<(u64, usize)> {
    hop!();
    let (inode, given) = (file.node().inode(), total(bufs));
    let (mut pages, past) = lock_to_write(core, inode, inode.regular()?, offset, bufs)?;
    let size = inode.size();
    let start = offset.unwrap_or(size);
    let end = start.saturating_add(given as u64);
    let intent = || intent_to_write(core, size, start, given as u64);
    transaction.reserve(inode, &pages, start..end, intent)?;
    drop_privileges(core, who, file.node())?;
    let space = FileSpace::new(core, inode, Check::of(who));
    let done = if past {
        // Nothing changes in memory: readers of this page take the lock, and read it again.
        pages.change_unloaded(start / PAGE..start / PAGE + 1);
        given
    } else {
        write_in_memory(core, inode, &mut pages, start, bufs, &space)?
    };
    let mut transaction = transaction.lock([inode]);
    let (end, now) = (start + done as u64, inode.time_of_change());
    // Most writes come in the same tick of the clock as the one before, and leave the
    // attributes unchanged.
    if inode.size() < end || !inode.is_modified(now) {
        let mut meta = inode.write();
        meta.size = meta.size.max(end);
        meta.modified(now);
    }
    pages.has_size(inode.size());
    space.submit(transaction.reservation());
    commit_written(transaction, inode, &pages, bufs, (start, done))?;
    Ok((start, done))
}

/// Makes a file durable; `data_only`: the data, and the metadata that reading it back needs.
fn sync_file(core: &Core, file: &OpenFile, data_only: bool) -> Result<()> {
    hop!();
    if !data_only {
        write_time(core, file.node().inode())?;
    }
    // Stores take changes in one order: all changes of this file lie before this point.
    sync_for(core, file, data_only)
}

/// Upper bounds for a write to a file of this size, without space for pages that have none: the
/// page cache reserves it page by page.
pub(super) fn intent_to_write(core: &Core, size: u64, start: u64, len: u64) -> Intent {
    hop!();
    let end = start.saturating_add(len);
    let class = match end > size {
        true => Class::Growing,
        false => Class::Changing,
    };
    Intent {
        class,
        ranges: 1,
        records: 1,
        moved: outgrown(core, size, end),
        ..Intent::default()
    }
    .writing(start, len, size)
}

/// Locks the pages of a file once nothing is missing that a write needs. Returns also whether
/// the write [bypasses memory](goes_past).
#[inline]
fn lock_to_write<'p>(
    core: &Core,
    inode: &Inode,
    body: &'p Pages,
    offset: Option<u64>,
    bufs: &[IoSlice<'_>],
) -> Result<(PagesLock<'p>, bool)> {
    hop!();
    let mut past = false;
    let pages = lock_with(core, inode, body, |pages| {
        let start = offset.unwrap_or(inode.size());
        inode.allow_writing(offset)?;
        if start >= SIZE_MAX {
            return Err(Errno::EFBIG);
        }
        if inode.is_complete() {
            past = false;
            return Ok(None);
        }
        let end = start.saturating_add(total(bufs) as u64);
        past = bufs.len() == 1 && goes_past(inode, pages, start..end);
        let lens = bufs.iter().map(|buf| buf.len());
        Ok(match past {
            true => None,
            false => missing_edges(inode, pages, start, lens),
        })
    })?;
    Ok((pages, past))
}

/// Writes to pages of which nothing is missing; returns the number of bytes written.
fn write_in_memory(
    core: &Core,
    inode: &Inode,
    pages: &mut PagesLock<'_>,
    start: u64,
    bufs: &[IoSlice<'_>],
    space: &FileSpace<'_>,
) -> Result<usize> {
    hop!();
    let size = inode.size();
    if bufs.len() > 1 && start < size {
        // Several buffers are one write.
        pages.begin();
    }
    if start.saturating_add(total(bufs) as u64) > WHOLE {
        pages.set_arrival(core.reclaim.epochs.epoch(), Arrival::Used);
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

/// Commits written bytes: their offset, and their number.
fn commit_written(
    transaction: LockedTransaction<'_, '_, 1>,
    inode: &Inode,
    pages: &PagesLock<'_>,
    bufs: &[IoSlice<'_>],
    (start, done): (u64, usize),
) -> Result<()> {
    hop!();
    let ino = inode.ino();
    // In log order, so that they are the latest.
    let mut batch = vec![Change::Attributes {
        inode: inode.record(&inode.meta()),
    }];
    let (mut offset, mut left) = (start, done);
    for buf in bufs {
        let data = &buf[..buf.len().min(left)];
        if !data.is_empty() {
            batch.push(Change::Write { ino, offset, data });
        }
        offset += data.len() as u64;
        left -= data.len();
    }
    transaction.commit_written(&batch, &|page| pages.show(page))
}

fn total(bufs: &[IoSlice<'_>]) -> usize {
    bufs.iter()
        .fold(0, |sum, buf| sum.saturating_add(buf.len()))
}
