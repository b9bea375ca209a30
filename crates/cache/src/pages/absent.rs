//! Pages whose bytes are elsewhere: put aside when memory is wanted, brought back when they are.
//!
//! An absent page takes space like any other and is data to a seek, but has no frame. Whoever
//! reads it, or writes a part of it, has it brought first, by the owner, who knows where its bytes
//! are. All other changes do to absent pages what they do to those in memory, as far as these are
//! concerned wholly; of the bytes of one that is zeroed in part the owner sees to it that they are
//! brought as they are then.

use super::change::Change;
use super::{PagesLock, Unwritten};
use crate::PAGE_SIZE;
use crate::account::Account;
use holdfast_types::Result;
use std::ops::Range;

impl PagesLock<'_> {
    /// Pages that are absent.
    #[must_use]
    pub fn absent(&self) -> u64 {
        self.frames.side().map_or(0, Unwritten::absent_pages)
    }

    /// The first absent pages among these that follow each other.
    #[must_use]
    pub fn next_absent(&self, pages: Range<u64>) -> Option<Range<u64>> {
        self.frames.side()?.next_absent(pages)
    }

    /// The first page at or behind this one that is in memory.
    #[must_use]
    pub fn next_present(&self, page: u64) -> Option<u64> {
        self.frames.next_frame(page)
    }

    /// Says of pages that have no frame that their bytes are elsewhere. Readers do not learn it here:
    /// the owner sees to it that they ask, before he gives up the lock.
    ///
    /// # Errors
    /// What the space says of those that were holes; nothing has changed then.
    pub fn put_aside(&mut self, pages: Range<u64>, account: Account<'_>) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        let mut change = Change::new(self, account);
        debug_assert_eq!(change.pages.frames.count(&pages), 0, "they are in memory");
        let missing = (pages.end - pages.start) - change.pages.count_in(&pages);
        change.reservation.grow(missing)?;
        let frames = change.frames();
        frames.begin();
        frames.with_side(|unwritten| unwritten.put_aside(pages), Unwritten::pages);
        Ok(())
    }

    /// Drops the frames of these pages, whose bytes are elsewhere, too; returns how many there
    /// were. As for [`put_aside`](Self::put_aside), the owner sees to it that readers ask.
    pub fn forget(&mut self, pages: Range<u64>, account: Account<'_>) -> u64 {
        let change = Change::new(self, account);
        let frames = &mut change.pages.frames;
        let mut dropped = 0;
        let mut next = frames.next_frame(pages.start);
        while let Some(start) = next.filter(|start| *start < pages.end) {
            let end = frames.next_gap(start).min(pages.end);
            frames.begin();
            frames.with_side(
                |unwritten| unwritten.put_aside(start..end),
                Unwritten::pages,
            );
            frames.remove(start..end);
            dropped += end - start;
            next = frames.next_frame(end);
        }
        dropped
    }

    /// Brings bytes of absent pages back: whole pages from `offset` on, but for the file's last.
    ///
    /// # Errors
    /// What the space says of pages that are not absent, but holes. Absent ones have their space.
    pub fn populate(&mut self, offset: u64, data: &[u8], account: Account<'_>) -> Result<()> {
        debug_assert!(offset.is_multiple_of(PAGE_SIZE as u64), "a part of a page");
        self.begin();
        Change::new(self, account)
            .write_shown(offset, data)
            .map(drop)
    }
}
