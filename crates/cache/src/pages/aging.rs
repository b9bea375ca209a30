//! Which pages are used again, for an owner that forgets some. The module [`frame`](crate::frame)
//! keeps the marks.
//!
//! Pages are marked if [`set_arrival`](PagesLock::set_arrival) was called before they arrived. An
//! owner that forgets only whole files needs no marks.

use super::content::{Pages, PagesLock};
use crate::account::Account;
use crate::frame::bits::{bits, mask};
use crate::frame::{Arrival, Set};
use crate::sizes::{GROUP_PAGES, PAGE_SHIFT, PAGE_SIZE};
use holdfast_sync::epoch;
use std::ops::Range;

impl Pages {
    /// Notes uses of bytes in this epoch. Returns whether one of their pages is fresh, so that this
    /// is the use that it was brought for. Takes no lock.
    pub fn touch(&self, bytes: Range<u64>, epoch: u8) -> bool {
        let pages = bytes.start >> PAGE_SHIFT..bytes.end.div_ceil(PAGE_SIZE as u64);
        self.frames.touch(pages, epoch, &epoch::pin())
    }
}

impl PagesLock<'_> {
    /// Sets the epoch and kind of pages that arrive under this lock from now on; a page that is
    /// written over is used.
    pub fn set_arrival(&mut self, epoch: u8, arrival: Arrival) {
        self.frames.set_arrival(epoch, arrival);
    }

    /// Notes that a page that just arrived had been forgotten too early: it counts as used again.
    pub fn mark_used(&mut self, page: u64) {
        self.frames.mark_used(page);
    }

    /// Scans these pages, as far as they are in the same group of 64 as the first one. Returns at
    /// most `most` of those that were not used since the last scan, to be
    /// [forgotten](Self::forget_unused).
    pub fn look(&mut self, pages: Range<u64>, set: Set, epoch: u8, most: u64) -> Unused {
        let group = pages.start / GROUP_PAGES;
        let end = pages.end.min((group + 1) * GROUP_PAGES);
        let mut unused = Unused {
            group,
            mask: self.frames.look(pages.start..end, set, epoch),
        };
        while unused.count() > most {
            unused.mask &= !(1 << unused.mask.ilog2());
        }
        unused
    }

    /// Drops the frames of pages that a [scan](Self::look) found; see [`forget`](Self::forget).
    pub fn forget_unused(&mut self, unused: &Unused, account: Account<'_>) {
        let first = unused.group * GROUP_PAGES;
        let mut left = unused.mask;
        while left != 0 {
            let start = u64::from(left.trailing_zeros());
            let end = start + u64::from((left >> start).trailing_ones());
            self.forget(first + start..first + end, account);
            left &= !mask(start..end);
        }
    }
}

/// Pages of a group that a scan found unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unused {
    group: u64,
    mask: u64,
}

impl Unused {
    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        u64::from(self.mask.count_ones())
    }

    /// Their numbers.
    pub fn pages(&self) -> impl Iterator<Item = u64> {
        let first = self.group * GROUP_PAGES;
        bits(self.mask).map(move |bit| first + u64::from(bit))
    }
}
