//! copy_file_range(2).

use holdfast_cache::{Pages, PagesLock, Piece};
use std::io::IoSlice;

use crate::FileSystem;
use crate::attributes::atime::note_access;
use crate::attributes::privileges::drop_privileges;
use crate::core::Core;
use crate::events::notify_event;
use crate::inode::{Inode, Numbered as _};
use crate::io::checks::{SIZE_MAX, readable, writable};
use crate::io::populate::{fill_locked, lock_with, missing_pages, populate_pages};
use crate::io::read::read_file;
use crate::io::write::{intent_to_write, write_file};
use crate::notify::notify_inode;
use crate::open_file::OpenFile;
use crate::quota::Check;
use crate::reclaim::content::{cached_pages, shrink_content_since};
use crate::shared::refresh_inode;
use crate::space::FileSpace;
use crate::store::{Change, Intent, Operation};
use crate::through::Changed;
use crate::transaction::{Begun, Transaction, begin_content};
use crate::types::{Caller, Errno, FileType, OpenFlags, Result};
use crate::watch::EventMask;

/// Bytes that are read and written at once over a store that does not copy.
const BUFFER: u64 = 1 << 20;
/// The most bytes of one call over a store that reserves space.
const PART: u64 = 8 << 20;
/// The most holes of one call: each is a change of its own.
const HOLES_MAX: u64 = 256;
/// The most bytes of one call, as in the kernel.
const COPY_MAX: u64 = 0x7fff_f000;

impl FileSystem {
    /// Copies `len` bytes between two ranges; returns the number of bytes copied. It is less at the
    /// source's end, when space ran out, or when much of the range is not in memory. Holes that
    /// cover whole pages stay holes.
    ///
    /// # Errors
    /// `EBADF` for wrong access modes or a target open for appending. `EINVAL` for overlapping
    /// ranges of one file, for offsets beyond 2^63 - 1, and for what is not a regular file. `EPERM`
    /// if flags of the target forbid it. `EOVERFLOW` for ranges that wrap. `EISDIR`, `EFBIG`,
    /// `ENOSPC`, `EDQUOT`, `EROFS`.
    pub fn copy_file_range(
        &self,
        who: &Caller,
        from: &OpenFile,
        from_offset: u64,
        to: &OpenFile,
        to_offset: u64,
        len: u64,
    ) -> Result<u64> {
        let core = &self.core;
        let kinds = [from.node().kind(), to.node().kind()];
        if kinds.contains(&FileType::Directory) {
            return Err(Errno::EISDIR);
        }
        if kinds != [FileType::Regular; 2] {
            return Err(Errno::EINVAL);
        }
        let (source, target) = (readable(from)?, writable(to)?);
        if to.flags().contains(OpenFlags::APPEND) {
            return Err(Errno::EBADF);
        }
        let len = len.min(COPY_MAX);
        for offset in [from_offset, to_offset] {
            if offset.checked_add(len).is_none() {
                return Err(Errno::EOVERFLOW);
            }
            if offset > SIZE_MAX {
                return Err(Errno::EINVAL);
            }
        }
        core.writable()?;
        to.node().inode().allow_writing(Some(to_offset))?;
        if to_offset >= SIZE_MAX {
            return Err(Errno::EFBIG);
        }
        let (from_inode, to_inode) = (from.node().inode(), to.node().inode());
        refresh_inode(core, from_inode)?;
        let len = copied_len(len, from_inode.size(), from_offset, to_offset);
        if len == 0 {
            return Ok(0);
        }
        let held = cached_pages(core);
        let begun = begin_content(core, |through| {
            if from.node() == to.node() && from_offset.abs_diff(to_offset) < len {
                return Err(Errno::EINVAL);
            }
            drop_privileges(core, who, to.node())?;
            let operation = Operation::Copy {
                from: (from_inode.ino(), from_offset),
                to: (to_inode.ino(), to_offset),
                len,
            };
            through.perform(who, &operation)
        });
        let copied = match begun {
            Ok(Begun::Done(performed)) => {
                performed.update(to.node(), Changed::Content)?;
                performed.done.count
            }
            Ok(Begun::Decide(transaction)) => {
                let (from, to) = ((from, source, from_offset), (to, target, to_offset));
                copy_pages(core, who, transaction, from, to, len)?
            }
            // The store does not copy.
            Err(Errno::EOPNOTSUPP | Errno::EXDEV | Errno::ENOSYS) => {
                copy_by_parts(core, who, (from, from_offset), (to, to_offset), len)?
            }
            Err(error) => return Err(error),
        };
        if copied > 0 {
            if !from.flags().contains(OpenFlags::NOATIME) {
                note_access(core, from_inode);
            }
            notify_event(core, from_inode, EventMask::ACCESS);
            notify_event(core, to_inode, EventMask::MODIFY);
            notify_inode(core, who, to_inode.ino(), true);
        }
        shrink_content_since(core, held);
        Ok(copied)
    }
}

/// Copies by reading and writing; returns the number of bytes.
fn copy_by_parts(
    core: &Core,
    who: &Caller,
    (from, from_offset): (&OpenFile, u64),
    (to, to_offset): (&OpenFile, u64),
    len: u64,
) -> Result<u64> {
    let mut done = 0;
    let mut buf = vec![0; BUFFER.min(len) as usize];
    while done < len {
        let part = usize::try_from(len - done).unwrap_or(usize::MAX);
        let part = part.min(buf.len());
        let read = read_file(core, from, from_offset + done, &mut buf[..part]);
        let copied = read.and_then(|read| {
            let bufs = [IoSlice::new(&buf[..read])];
            write_file(core, who, to, Some(to_offset + done), &bufs)
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

fn copy_pages(
    core: &Core,
    who: &Caller,
    mut transaction: Transaction<'_>,
    (from, source, from_offset): (&OpenFile, &Pages, u64),
    (to, target, to_offset): (&OpenFile, &Pages, u64),
    len: u64,
) -> Result<u64> {
    let (from_inode, inode) = (from.node().inode(), to.node().inode());
    let (source, mut pages, len) = if from.node() == to.node() {
        let (pages, len) = lock_within(core, inode, target, (from_offset, to_offset), len)?;
        (None, pages, len)
    } else {
        let from = (from_inode, source, from_offset);
        let (source, pages, len) = lock_to_copy(core, from, (inode, target, to_offset), len)?;
        (Some(source), pages, len)
    };
    if len == 0 {
        return Ok(0);
    }
    let (len, holes) = few_holes(source.as_ref().unwrap_or(&pages), from_offset, len);
    let bytes = to_offset..to_offset + len;
    transaction.reserve(inode, &pages, bytes, || Intent {
        pieces: 2 * holes,
        ..intent_to_write(core, inode.size(), to_offset, len)
    })?;
    drop_privileges(core, who, to.node())?;
    let space = FileSpace::new(core, inode, Check::of(who));
    let copied = match &source {
        Some(source) => pages.copy_range(to_offset, source, from_offset, len, space.account())?,
        None => pages.copy_within(to_offset, from_offset, len, space.account())?,
    };
    space.submit(transaction.reservation());
    commit_copied(transaction, inode, &mut pages, to_offset, copied)?;
    Ok(copied)
}

/// Locks the pages of a file once those that a copy reads and writes are in memory; returns
/// also the length of the copy.
fn lock_within<'p>(
    core: &Core,
    inode: &Inode,
    body: &'p Pages,
    (from, to): (u64, u64),
    given: u64,
) -> Result<(PagesLock<'p>, u64)> {
    let mut len = 0;
    let pages = lock_with(core, inode, body, |pages| {
        let all = copied_len(given, inode.size(), from, to);
        if all > 0 && to + all > from && to < from + all {
            return Err(Errno::EINVAL);
        }
        len = at_once(all);
        let missing = |at: u64| missing_pages(inode, pages, at..at.saturating_add(len));
        Ok(missing(from).or_else(|| missing(to)))
    })?;
    Ok((pages, len))
}

/// Locks the pages of two files once the pages that a copy reads and writes are in memory;
/// returns also the length of the copy.
fn lock_to_copy<'p>(
    core: &Core,
    (source, source_body, from): (&Inode, &'p Pages, u64),
    (target, target_body, to): (&Inode, &'p Pages, u64),
    given: u64,
) -> Result<(PagesLock<'p>, PagesLock<'p>, u64)> {
    let mut tries = 0;
    loop {
        // In ascending order of `ino`, so that two copies in opposite directions cannot
        // deadlock.
        let (mut source_pages, mut target_pages);
        if source.ino() < target.ino() {
            source_pages = source_body.lock();
            target_pages = target_body.lock();
        } else {
            target_pages = target_body.lock();
            source_pages = source_body.lock();
        }
        let len = at_once(copied_len(given, source.size(), from, to));
        let (read, written) = (from..from.saturating_add(len), to..to.saturating_add(len));
        let of_source = missing_pages(source, &source_pages, read.clone());
        let of_target = missing_pages(target, &target_pages, written.clone());
        let missing = of_source.as_ref().or(of_target.as_ref());
        if len == 0 || missing.is_none() {
            return Ok((source_pages, target_pages, len));
        }
        if missing.is_some_and(|needed| needed.tries() <= tries) {
            source_pages = fill_locked(core, source, source_body, source_pages, read)?;
            target_pages = fill_locked(core, target, target_body, target_pages, written)?;
            return Ok((source_pages, target_pages, len));
        }
        if let Some(needed) = of_source {
            drop(target_pages);
            populate_pages(core, source, source_body, source_pages, needed, &mut tries)?;
        } else if let Some(needed) = of_target {
            drop(source_pages);
            populate_pages(core, target, target_body, target_pages, needed, &mut tries)?;
        }
    }
}

/// The longest prefix of this range with few holes, and their number, for a store that gets
/// each hole as a change.
fn few_holes(pages: &PagesLock<'_>, offset: u64, len: u64) -> (u64, u64) {
    let (mut taken, mut holes) = (0, 0);
    for piece in pages.pieces(offset, offset + len) {
        holes += u64::from(matches!(piece, Piece::Zero(_)));
        if holes > HOLES_MAX {
            return (taken, HOLES_MAX);
        }
        taken += piece.len();
    }
    (len, holes)
}

/// The length of a copy that is done in one step, with all of its pages in memory.
fn at_once(len: u64) -> u64 {
    len.min(PART)
}

/// Commits bytes that were copied to a file with locked pages.
///
/// Only holes free blocks of the target: its other pages keep their blocks.
fn commit_copied(
    transaction: Transaction<'_>,
    target: &Inode,
    pages: &mut PagesLock<'_>,
    offset: u64,
    len: u64,
) -> Result<()> {
    let end = offset + len;
    let transaction = transaction.lock([target]);
    let record = {
        let mut meta = target.write();
        meta.size = meta.size.max(end);
        meta.modified(target.time_of_change());
        target.record(&meta)
    };
    pages.has_size(target.size());
    let ino = target.ino();
    let mut batch = vec![Change::Attributes { inode: record }];
    let mut at = offset;
    for piece in pages.pieces(offset, end) {
        let offset = at;
        at += piece.len();
        batch.push(match piece {
            Piece::Data(data) => Change::Write { ino, offset, data },
            Piece::Zero(len) => Change::Zero {
                ino,
                offset,
                len,
                keep: false,
            },
        });
    }
    transaction.commit_written(&batch, &|page| pages.show(page))
}

/// The number of bytes to copy from a source of this size.
fn copied_len(given: u64, size: u64, from: u64, to: u64) -> u64 {
    given.min(size.saturating_sub(from)).min(SIZE_MAX - to)
}
