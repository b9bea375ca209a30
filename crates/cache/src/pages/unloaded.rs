//! Absent pages: the owner drops their bytes to free memory, and fills them again when needed.
//!
//! An absent page takes space and is data to a seek, but has no frame. A thread that reads it, or
//! writes a part of it, has the owner fill it first, which knows where its bytes are. All other
//! changes affect absent pages as they affect pages in memory, if they affect a whole page. If one
//! zeroes a part of an absent page, the owner makes sure that a later fill returns the zeroes.

use super::change::Change;
use super::content::PagesLock;
use super::unwritten::Unwritten;
use crate::account::Account;
use holdfast_types::Result;
use std::ops::Range;

impl PagesLock<'_> {
    /// The number of absent pages.
    #[must_use]
    pub fn unloaded(&self) -> u64 {
        self.frames.side().map_or(0, Unwritten::unloaded_pages)
    }

    /// The first run of consecutive absent pages within `pages`.
    #[must_use]
    pub fn next_unloaded(&self, pages: Range<u64>) -> Option<Range<u64>> {
        self.frames.side()?.next_unloaded(pages)
    }

    /// The first page at or after this one that is in memory.
    #[must_use]
    pub fn next_present(&self, page: u64) -> Option<u64> {
        self.frames.next_frame(page)
    }

    /// Makes pages without a frame absent. Readers do not learn that here: the owner makes them
    /// ask, before it drops the lock.
    ///
    /// # Errors
    /// That of the space for pages that were holes; nothing has changed then.
    pub fn mark_unloaded(&mut self, pages: Range<u64>, account: Account<'_>) -> Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        let mut change = Change::new(self, account);
        debug_assert_eq!(change.pages.frames.count(&pages), 0, "they are in memory");
        let missing = (pages.end - pages.start) - change.pages.count_in(&pages);
        change.reservation.grow(missing)?;
        let frames = change.frames();
        frames.begin();
        frames.with_side(|unwritten| unwritten.mark_unloaded(pages), Unwritten::pages);
        Ok(())
    }

    /// Drops the frames of these pages, which the owner can fill again, and returns their number.
    /// As for [`mark_unloaded`](Self::mark_unloaded), the owner makes readers ask.
    pub fn forget(&mut self, pages: Range<u64>, account: Account<'_>) -> u64 {
        let change = Change::new(self, account);
        let frames = &mut change.pages.frames;
        let mut dropped = 0;
        let mut next = frames.next_frame(pages.start);
        while let Some(start) = next.filter(|start| *start < pages.end) {
            let end = frames.next_gap(start).min(pages.end);
            frames.begin();
            frames.with_side(
                |unwritten| unwritten.mark_unloaded(start..end),
                Unwritten::pages,
            );
            frames.remove(start..end);
            dropped += end - start;
            next = frames.next_frame(end);
        }
        dropped
    }
}
