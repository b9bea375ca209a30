//! The modes of fallocate(2).

use super::change::Change;
use super::content::PagesLock;
use crate::account::Account;
use crate::sizes::{MAX_SIZE, PAGE_END, PAGE_SHIFT, PAGE_SIZE};
use holdfast_types::{Errno, Result};
use std::ops::Range;

/// The page numbers of a range of bytes.
struct Span {
    /// Pages that the range touches.
    touched: Range<u64>,
    /// Pages that it covers wholly.
    whole: Range<u64>,
    /// The bytes themselves.
    bytes: Range<u64>,
}

impl Span {
    fn new(offset: u64, len: u64) -> Self {
        let start = offset.min(MAX_SIZE);
        let mut end = offset.saturating_add(len).min(MAX_SIZE);
        if end == MAX_SIZE {
            // No byte can follow: the last page counts as covered.
            end = PAGE_END << PAGE_SHIFT;
        }
        let page = PAGE_SIZE as u64;
        let (first, last) = (start.div_ceil(page), end / page);
        Self {
            touched: start / page..end.div_ceil(page),
            whole: first..last.max(first),
            bytes: start..end,
        }
    }

    /// Zeroes the framed bytes of the pages that are covered only in part.
    fn zero_edges(&self, pages: &mut PagesLock<'_>) {
        let Range { start: first, end } = self.touched;
        for page in [first, end - 1] {
            if self.whole.contains(&page) {
                continue;
            }
            let base = page << PAGE_SHIFT;
            let from = self.bytes.start.max(base) - base;
            let to = (self.bytes.end - base).min(PAGE_SIZE as u64);
            pages.zero_in_page(page, from as usize..to as usize);
        }
    }
}

fn aligned(offset: u64, len: u64) -> Result<(Range<u64>, i64)> {
    let page = PAGE_SIZE as u64;
    let end = offset
        .checked_add(len)
        .filter(|&end| end <= MAX_SIZE)
        .ok_or(Errno::EFBIG)?;
    if !offset.is_multiple_of(page) || !len.is_multiple_of(page) {
        return Err(Errno::EINVAL);
    }
    Ok((offset / page..end / page, (len / page).cast_signed()))
}

impl PagesLock<'_> {
    /// Allocates every page that `len` bytes from `offset` on touch: holes become unwritten. All or
    /// nothing. The cost depends only on the frames there, not on the length.
    ///
    /// # Errors
    /// Those of the space (`ENOSPC`); nothing has changed then.
    pub fn allocate(&mut self, offset: u64, len: u64, account: Account<'_>) -> Result<()> {
        let touched = Span::new(offset, len).touched;
        let mut change = Change::new(self, account);
        change.allocate(&touched)
    }

    /// Makes `len` bytes from `offset` on read as zeros and gives their space back: pages covered
    /// wholly become holes, the others are zeroed in part.
    pub fn punch(&mut self, offset: u64, len: u64, account: Account<'_>) {
        let span = Span::new(offset, len);
        if self.is_empty() || span.bytes.is_empty() {
            return;
        }
        let change = Change::new(self, account);
        span.zero_edges(change.pages);
        change.pages.remove(span.whole);
    }

    /// Makes `len` bytes from `offset` on read as zeros and allocates their space. Pages covered
    /// wholly become unwritten, and so do holes at the edges. The other pages are zeroed in part.
    ///
    /// # Errors
    /// Those of the space (`ENOSPC`); nothing has changed then.
    pub fn zero(&mut self, offset: u64, len: u64, account: Account<'_>) -> Result<()> {
        let span = Span::new(offset, len);
        if span.bytes.is_empty() {
            return Ok(());
        }
        let mut change = Change::new(self, account);
        change.allocate(&span.touched)?;
        span.zero_edges(change.pages);
        change.pages.remove(span.whole.clone());
        change.pages.fill_holes(&span.whole);
        Ok(())
    }

    /// Removes `len` bytes at `offset`; the bytes after them move down.
    ///
    /// # Errors
    /// `EINVAL` unless both are multiples of the page size, `EFBIG` past [`MAX_SIZE`].
    pub fn collapse(&mut self, offset: u64, len: u64, account: Account<'_>) -> Result<()> {
        let (pages, distance) = aligned(offset, len)?;
        let change = Change::new(self, account);
        change.pages.remove(pages.clone());
        change.pages.shift(pages.end, -distance);
        Ok(())
    }

    /// Inserts a hole of `len` bytes at `offset`; the bytes from there on move up. Pages that would
    /// move past [`MAX_SIZE`] are given back. If the owner has checked the size, they are allocated
    /// pages after the end.
    ///
    /// # Errors
    /// `EINVAL` unless both are multiples of the page size, `EFBIG` past [`MAX_SIZE`].
    pub fn insert(&mut self, offset: u64, len: u64, account: Account<'_>) -> Result<()> {
        let (pages, distance) = aligned(offset, len)?;
        let change = Change::new(self, account);
        let stays_below = PAGE_END - distance.cast_unsigned();
        change.pages.remove(stays_below.max(pages.start)..PAGE_END);
        change.pages.shift(pages.start, distance);
        Ok(())
    }
}

impl Change<'_, '_> {
    fn allocate(&mut self, pages: &Range<u64>) -> Result<()> {
        let missing = (pages.end - pages.start) - self.pages.count_in(pages);
        if missing > 0 {
            self.reservation.grow(missing)?;
            self.pages.fill_holes(pages);
        }
        Ok(())
    }
}
