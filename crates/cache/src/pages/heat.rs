//! Which pages are used again, for an owner that forgets some: see [`frame`](crate::frame), which keeps the marks.
//!
//! Marked are pages that were [stamped](PagesLock::stamp) when they came. An owner that forgets a file only as a whole needs none.

use super::{PAGE_SIZE, Pages, PagesLock};
use crate::account::Account;
use crate::frame::{Arrival, Set};
use crate::group::{GROUP_PAGES, PAGE_SHIFT, bits, mask};
use holdfast_sync::epoch;
use std::ops::Range;

impl Pages {
    /// Says that bytes are used, in this epoch. Returns whether one of their pages came just now, so that this is the
    /// use that it came for. Takes no lock.
    pub fn touch(&self, bytes: Range<u64>, epoch: u8) -> bool {
        let pages = bytes.start >> PAGE_SHIFT..bytes.end.div_ceil(PAGE_SIZE as u64);
        self.frames.touch(pages, epoch, &epoch::pin())
    }
}

impl PagesLock<'_> {
    /// Pages that come from now on, under this lock, come in this epoch; those that are written over are used.
    pub fn stamp(&mut self, epoch: u8, arrival: Arrival) {
        self.frames.stamp(epoch, arrival);
    }

    /// Says of a page that came just now that it had been forgotten too early: it counts as used again.
    pub fn came_again(&mut self, page: u64) {
        self.frames.came_again(page);
    }

    /// Looks which of these pages were used since the last look, as far as they are in the same group of 64 as the first one. What was
    /// not, at most `most` of them, is in the answer, and to be [forgotten](Self::forget_unused).
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

    /// Drops the frames of pages that a [look](Self::look) found; see [`forget`](Self::forget).
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

/// Pages of a group that a look found unused.
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
