//! copy_file_range(2).

use holdfast_cache::{Pages, PagesLock, Piece};

use super::{SIZE_MAX, readable, writable};
use crate::FileSystem;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _};
use crate::open::OpenFile;
use crate::quota::Check;
use crate::store::{Change, Intent, Reservation};
use crate::types::{Caller, Errno, FileType, OpenFlags, Result};
use crate::watch::EventMask;

/// Bytes that one call carries at most over a store that is asked for room for them.
const PART: u64 = 8 << 20;
/// Holes that one call carries at most: each is a change of its own.
const HOLES_MAX: u64 = 256;
/// Bytes that one call carries at most, as in the kernel.
const COPY_MAX: u64 = 0x7fff_f000;

impl FileSystem {
    /// Copies `len` bytes between two places; returns the bytes copied, fewer at the source's
    /// end, when space ran out, or when there is much to copy that is not in memory. Holes stay holes where they cover whole pages.
    ///
    /// # Errors
    /// `EBADF` for wrong access modes or a target open for appending; `EINVAL` for ranges of one
    /// file that overlap, or what is not a regular file; `EISDIR`; `EFBIG`; `ENOSPC`, `EDQUOT`; `EROFS`;
    /// `EPERM` where flags of the target forbid it; `EOVERFLOW` for ranges that wrap, `EINVAL` for offsets beyond 2^63 - 1.
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
        let held = core.cached();
        let copied = if let Some(through) = core.through() {
            let len = len.min(SIZE_MAX - to_offset);
            through.copy(who, (from, from_offset), (to, to_offset), len)?
        } else if from.node() == to.node() {
            core.copy_within(who, to, target, from_offset, to_offset, len)?
        } else {
            core.copy_between(
                who,
                (from_inode, source, from_offset),
                (to, target, to_offset),
                len,
            )?
        };
        if copied > 0 {
            if !from.flags().contains(OpenFlags::NOATIME) {
                core.accessed(from_inode);
            }
            core.notify_event(from_inode, EventMask::ACCESS);
            core.notify_event(to_inode, EventMask::MODIFY);
            core.notify_inode(who, to_inode.ino(), true);
        }
        core.relieve_since(held);
        Ok(copied)
    }
}

impl Core {
    fn copy_within(
        &self,
        who: &Caller,
        to: &OpenFile,
        pages: &Pages,
        from_offset: u64,
        to_offset: u64,
        len: u64,
    ) -> Result<u64> {
        let inode = to.node().inode();
        let given = len;
        let mut len = 0;
        let mut pages = self.lock_with(inode, pages, |pages| {
            let all = copied_len(given, inode.size(), from_offset, to_offset);
            if all > 0 && to_offset + all > from_offset && to_offset < from_offset + all {
                return Err(Errno::EINVAL);
            }
            len = self.at_once(all);
            let missing = |at: u64| self.missing(inode, pages, at..at.saturating_add(len));
            Ok(missing(from_offset).or_else(|| missing(to_offset)))
        })?;
        if len == 0 {
            return Ok(0);
        }
        let size = inode.size();
        let (len, holes) = self.few_holes(&pages, from_offset, len);
        let bytes = to_offset..to_offset + len;
        let mut reservation = self.reserve_for(inode, &pages, bytes, || {
            self.intent_to_copy(size, to_offset, len, holes)
        })?;
        self.drop_privileges(who, to.node())?;
        let space = self.space_of(inode, Check::of(who));
        let copied = pages.copy_within(to_offset, from_offset, len, space.account())?;
        space.hand_over(&mut reservation);
        self.copied(&mut reservation, inode, &mut pages, to_offset, copied)?;
        Ok(copied)
    }

    fn copy_between(
        &self,
        who: &Caller,
        (source, source_body, from_offset): (&Inode, &Pages, u64),
        (to, target_body, to_offset): (&OpenFile, &Pages, u64),
        len: u64,
    ) -> Result<u64> {
        let target = to.node().inode();
        let (source_pages, mut target_pages, len) = self.lock_to_copy(
            (source, source_body, from_offset),
            (target, target_body, to_offset),
            len,
        )?;
        if len == 0 {
            return Ok(0);
        }
        let (len, holes) = self.few_holes(&source_pages, from_offset, len);
        let bytes = to_offset..to_offset + len;
        let mut reservation = self.reserve_for(target, &target_pages, bytes, || {
            self.intent_to_copy(target.size(), to_offset, len, holes)
        })?;
        self.drop_privileges(who, to.node())?;
        let space = self.space_of(target, Check::of(who));
        let copied =
            target_pages.copy_range(to_offset, &source_pages, from_offset, len, space.account())?;
        space.hand_over(&mut reservation);
        self.copied(
            &mut reservation,
            target,
            &mut target_pages,
            to_offset,
            copied,
        )?;
        Ok(copied)
    }

    /// Locks the pages of two files once those that a copy reads and those that it writes are in
    /// memory; says how much it may copy.
    fn lock_to_copy<'p>(
        &self,
        (source, source_body, from): (&Inode, &'p Pages, u64),
        (target, target_body, to): (&Inode, &'p Pages, u64),
        given: u64,
    ) -> Result<(PagesLock<'p>, PagesLock<'p>, u64)> {
        let mut tries = 0;
        loop {
            // By number, so that two copies in opposite directions cannot wait for each other.
            let (mut source_pages, mut target_pages);
            if source.ino() < target.ino() {
                source_pages = source_body.lock();
                target_pages = target_body.lock();
            } else {
                target_pages = target_body.lock();
                source_pages = source_body.lock();
            }
            let len = self.at_once(copied_len(given, source.size(), from, to));
            let (read, written) = (from..from.saturating_add(len), to..to.saturating_add(len));
            let of_source = self.missing(source, &source_pages, read.clone());
            let of_target = self.missing(target, &target_pages, written.clone());
            let missing = of_source.as_ref().or(of_target.as_ref());
            if len == 0 || missing.is_none() {
                return Ok((source_pages, target_pages, len));
            }
            if missing.is_some_and(|needed| needed.tries() <= tries) {
                source_pages = self.bring_locked(source, source_body, source_pages, read)?;
                target_pages = self.bring_locked(target, target_body, target_pages, written)?;
                return Ok((source_pages, target_pages, len));
            }
            if let Some(needed) = of_source {
                drop(target_pages);
                self.populate(source, source_body, source_pages, needed, &mut tries)?;
            } else if let Some(needed) = of_target {
                drop(source_pages);
                self.populate(target, target_body, target_pages, needed, &mut tries)?;
            }
        }
    }

    /// What a copy of bytes with so many holes may take.
    fn intent_to_copy(&self, size: u64, to: u64, len: u64, holes: u64) -> Intent {
        let intent = self.intent_to_write(size, to, len);
        Intent {
            pieces: 2 * holes,
            ..intent
        }
    }

    /// As much of these bytes as has few holes, and how many, for a store that hears of each.
    fn few_holes(&self, pages: &PagesLock<'_>, offset: u64, len: u64) -> (u64, u64) {
        let (mut taken, mut holes) = (0, 0);
        if self.pinned {
            return (len, holes);
        }
        for piece in pages.pieces(offset, offset + len) {
            holes += u64::from(matches!(piece, Piece::Zero(_)));
            if holes > HOLES_MAX {
                return (taken, HOLES_MAX);
            }
            taken += piece.len();
        }
        (len, holes)
    }

    /// As much of a copy as is done at once: all of it is in memory then.
    fn at_once(&self, len: u64) -> u64 {
        match self.pinned {
            true => len,
            false => len.min(PART),
        }
    }

    /// Bytes arrived in a file whose pages are locked.
    ///
    /// What was a page and is one needs no other place: only where there are holes now are places given back.
    fn copied(
        &self,
        reservation: &mut Reservation<'_>,
        target: &Inode,
        pages: &mut PagesLock<'_>,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        let end = offset + len;
        let turn = self.log_order([target]);
        let record = {
            let mut meta = target.write();
            meta.size = meta.size.max(end);
            meta.modified(target.time_of_change());
            target.record(&meta)
        };
        pages.has_size(target.size());
        if self.pinned {
            return Ok(());
        }
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
        let held = reservation.held();
        self.apply_written(turn, held, target, &batch, &|page| pages.show(page))
    }
}

/// How much of so many bytes there is to copy, of a source of this size.
fn copied_len(given: u64, size: u64, from: u64, to: u64) -> u64 {
    given.min(size.saturating_sub(from)).min(SIZE_MAX - to)
}
