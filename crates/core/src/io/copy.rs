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
            core.happened(from_inode, EventMask::ACCESS);
            core.happened(to_inode, EventMask::MODIFY);
            core.tell_inode(who, to_inode.ino(), true);
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
        let mut pages = pages.lock();
        let size = to.node().inode().size();
        let len = len
            .min(size.saturating_sub(from_offset))
            .min(SIZE_MAX - to_offset);
        if len == 0 {
            return Ok(0);
        }
        if to_offset + len > from_offset && to_offset < from_offset + len {
            return Err(Errno::EINVAL);
        }
        let inode = to.node().inode();
        let len = self.bring_to_copy(inode, &mut pages, from_offset, len)?;
        let len = self.bring_to_copy(inode, &mut pages, to_offset, len)?;
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
        // By number, so that two copies in opposite directions cannot wait for each other.
        let (mut source_pages, mut target_pages);
        if source.ino() < target.ino() {
            source_pages = source_body.lock();
            target_pages = target_body.lock();
        } else {
            target_pages = target_body.lock();
            source_pages = source_body.lock();
        }
        let size = source.size();
        let len = len
            .min(size.saturating_sub(from_offset))
            .min(SIZE_MAX - to_offset);
        if len == 0 {
            return Ok(0);
        }
        let len = self.bring_to_copy(source, &mut source_pages, from_offset, len)?;
        let len = self.bring_to_copy(target, &mut target_pages, to_offset, len)?;
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

    /// Makes sure that of the bytes that a copy reads, or writes, none is absent; returns how many
    /// it may copy.
    fn bring_to_copy(
        &self,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        offset: u64,
        len: u64,
    ) -> Result<u64> {
        if self.pinned {
            return Ok(len);
        }
        let len = len.min(PART);
        if inode.is_complete() {
            return Ok(len);
        }
        let end = offset.saturating_add(len);
        self.bring(inode, pages, offset..end)?;
        Ok(len)
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
        let turn = self.turns([target]);
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
