//! Changes, and their effect on the account.

use super::content::PagesLock;
use super::unwritten::Unwritten;
use crate::account::{Account, Held, Reservation};
use crate::frame::{Frame, FramesLock};
use crate::sizes::{MAX_SIZE, PAGE_END, PAGE_SHIFT, PAGE_SIZE};
use holdfast_types::Errno;
use std::ops::Range;

/// A change in progress. When it ends, in whichever way, the account is charged the difference
/// between what is held now and what was held: no operation adjusts a counter by hand.
pub(super) struct Change<'c, 'a> {
    pub(super) pages: &'c mut PagesLock<'a>,
    account: Account<'c>,
    pub(super) reservation: Reservation<'c>,
    before: Held,
}

impl<'c, 'a> Change<'c, 'a> {
    pub(super) fn new(pages: &'c mut PagesLock<'a>, account: Account<'c>) -> Self {
        let before = pages.held();
        Self {
            pages,
            account,
            reservation: Reservation::none(account.space),
            before,
        }
    }

    pub(super) fn frames(&mut self) -> &mut FramesLock<'a, Unwritten> {
        &mut self.pages.frames
    }

    /// Reserves as many of `pages` as there is room for; with fewer, returns the reason.
    pub(super) fn reserve_up_to(&mut self, pages: u64) -> (u64, Option<Errno>) {
        match self.reservation.grow(pages) {
            Ok(()) => return (pages, None),
            // One page is the least to ask for.
            Err(errno) if pages == 1 => return (0, Some(errno)),
            Err(_) => {}
        }
        for had in 0..pages {
            if let Err(errno) = self.reservation.grow(1) {
                return (had, Some(errno));
            }
        }
        (pages, None)
    }
}

impl Drop for Change<'_, '_> {
    fn drop(&mut self) {
        self.pages.frames.normalise();
        let after = self.pages.held();
        self.account.stats.update(self.before, after);
        self.reservation.take_back(self.before.pages);
        self.reservation.place(after.pages);
    }
}

impl PagesLock<'_> {
    /// A bit for each page of a group that takes space and has no frame.
    pub(super) fn unframed_mask(&self, group: u64) -> u64 {
        self.frames
            .side()
            .map_or(0, |unwritten| unwritten.mask(group))
    }

    /// Removes `pages` from the unwritten and absent ones.
    pub(super) fn remove_unframed(&mut self, pages: Range<u64>) {
        self.change_unframed(|unwritten| unwritten.remove(pages));
    }

    /// Turns `pages` into holes.
    pub(super) fn remove(&mut self, pages: Range<u64>) {
        self.frames.remove(pages.clone());
        self.remove_unframed(pages);
    }

    /// Moves every page from `from` on by `delta`. None may leave the file's range or arrive at a
    /// page that stays: the caller has removed those.
    pub(super) fn shift(&mut self, from: u64, delta: i64) {
        self.frames.shift(from, delta);
        self.change_unframed(|unwritten| unwritten.shift(from, delta));
    }

    /// Makes every hole of `pages` unwritten.
    pub(super) fn fill_holes(&mut self, pages: &Range<u64>) {
        let mut at = pages.start;
        loop {
            let gap = self.frames.next_gap(at);
            if gap >= pages.end {
                return;
            }
            at = self
                .frames
                .next_frame(gap)
                .map_or(pages.end, |frame| frame.min(pages.end));
            self.frames
                .with_side(|unwritten| unwritten.allocate(gap..at), Unwritten::pages);
        }
    }

    /// Zeroes part of a page, if it has a frame. (The bytes of an absent page are not here.)
    pub(super) fn zero_in_page(&mut self, page: u64, bytes: Range<usize>) {
        let Some(stored) = self.frames.get(page) else {
            self.change_unloaded(page..page + 1);
            return;
        };
        let old = stored.bytes();
        if old.len() <= bytes.start {
            return;
        }
        let mut frame = Frame::with_capacity(stored.capacity());
        frame.push(&old[..bytes.start]);
        if old.len() > bytes.end {
            frame.pad(bytes.end);
            frame.push(&old[bytes.end..]);
        }
        self.frames.begin();
        self.frames.put(page, frame);
    }

    /// Drops everything from `new_size` on: later pages become holes, and the rest of its last page
    /// becomes zero. The cost is that of what is held there, not of the range.
    pub fn truncate(&mut self, new_size: u64, account: Account<'_>) {
        if self.is_empty() {
            return;
        }
        let change = Change::new(self, account);
        let pages = &mut *change.pages;
        let first_gone = (new_size.min(MAX_SIZE)).div_ceil(PAGE_SIZE as u64);
        pages.remove(first_gone..PAGE_END);
        pages.frames.normalise();
        let tail = (new_size % PAGE_SIZE as u64) as usize;
        if tail == 0 || new_size > MAX_SIZE {
            return;
        }
        if new_size < PAGE_SIZE as u64 && pages.frames.is_small() {
            pages.shrink_small(tail);
        } else {
            pages.zero_in_page(new_size >> PAGE_SHIFT, tail..PAGE_SIZE);
        }
    }

    /// Cuts the one frame of a small file to `len` bytes, in the smallest class for them.
    fn shrink_small(&mut self, len: usize) {
        let Some(stored) = self.frames.get(0) else {
            return;
        };
        let kept = &stored.bytes()[..len.min(stored.bytes().len())];
        let mut frame = Frame::with_capacity(len);
        if kept.len() < stored.bytes().len() || frame.capacity() < stored.capacity() {
            frame.push(kept);
            self.frames.begin();
            self.frames.put(0, frame);
        }
    }

    /// Drops everything and charges the account: then the value may be dropped, or used again.
    pub fn clear(&mut self, account: Account<'_>) {
        if self.is_empty() {
            return;
        }
        self.change_unloaded(0..PAGE_END);
        let mut change = Change::new(self, account);
        change.frames().clear();
    }
}
