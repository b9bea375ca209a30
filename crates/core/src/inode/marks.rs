//! Flag bits of an inode, each of which changes by itself.

use crate::inode::bits::{COMPLETE, FULL, LAZY_TIME, MAPPED, NEW, QUERIED};
use std::sync::atomic::Ordering;

use super::{Inode, Object};
use crate::clock;
use crate::types::Time;

/// The time of one change of several inodes: differs from every time of theirs that was read.
pub(crate) fn time_of_changes<'i>(inodes: impl IntoIterator<Item = &'i Inode>) -> Time {
    let queried = inodes
        .into_iter()
        .fold(false, |queried, inode| inode.take_queried() | queried);
    if queried {
        clock::fresh()
    } else {
        clock::change()
    }
}

impl Object {
    /// Notes that the times are about to be read: later changes take another time. Writes only if
    /// the mark is not set.
    ///
    /// A concurrent change may have checked the mark before. Its time is not later than this call,
    /// and the caller sees the change or not, as with any two concurrent calls.
    #[inline]
    pub(crate) fn mark_queried(&self) {
        if self.front.marks.load(Ordering::Relaxed) & QUERIED == 0 {
            self.front.marks.fetch_or(QUERIED, Ordering::AcqRel);
        }
    }

    /// The time of a change that is made now: differs from every time that was read.
    #[inline]
    pub(crate) fn time_of_change(&self) -> Time {
        if self.take_queried() {
            clock::fresh()
        } else {
            clock::change()
        }
    }

    /// Were the times read? Clears the mark.
    #[inline]
    fn take_queried(&self) -> bool {
        self.front.marks.load(Ordering::Relaxed) & QUERIED != 0
            && self.front.marks.fetch_and(!QUERIED, Ordering::AcqRel) & QUERIED != 0
    }

    /// Is all data of the file in memory? Otherwise the store has to be read first.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        // Acquire pairs with the release in `completed`: a reader of the mark sees the pages.
        self.front.marks.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Is it known for each page whether it has data? Otherwise the store has to be asked first.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.front.marks.load(Ordering::Acquire) & MAPPED != 0
    }

    /// Marks the file complete. This and all setters below need the page lock.
    pub(crate) fn completed(&self) {
        let marks = &self.front.marks;
        marks.fetch_or(COMPLETE | MAPPED, Ordering::Release);
    }

    /// Marks the file as mapped but not complete, after the pages have begun to change.
    pub(crate) fn partial(&self) {
        let marks = &self.front.marks;
        marks.fetch_or(MAPPED, Ordering::Relaxed);
        marks.fetch_and(!COMPLETE, Ordering::Release);
    }

    /// Does each page before the end have data, if the file is not mapped?
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.front.marks.load(Ordering::Acquire) & FULL != 0
    }

    /// Marks a file that is not mapped as having data in each page.
    pub(crate) fn full(&self) {
        self.front.marks.fetch_or(FULL, Ordering::Release);
    }

    /// Marks the file as not mapped and full, after the pages have begun to change.
    pub(crate) fn unmapped(&self) {
        self.full();
        let marks = &self.front.marks;
        marks.fetch_and(!(COMPLETE | MAPPED), Ordering::Release);
    }

    /// Marks the file as not mapped, and as full or not, after the pages have begun to change.
    pub(super) fn unknown(&self, full: bool) {
        let known = if full { FULL } else { 0 };
        let renewed = |marks| Some(marks & !(COMPLETE | MAPPED | FULL) | known);
        let marks = &self.front.marks;
        let _ = marks.fetch_update(Ordering::Release, Ordering::Relaxed, renewed);
    }

    /// Has the store not been given the inode yet? Then only its creator may change it, marks
    /// included: other threads do not find it.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.front.marks.load(Ordering::Acquire) & NEW != 0
    }

    /// Marks an inode that the store has not been given, before it is published.
    pub(crate) fn mark_new(&self) {
        // No other thread sets marks yet. An atomic exchange would wait for all earlier stores to
        // the inode.
        let marks = self.front.marks.load(Ordering::Relaxed);
        self.front.marks.store(marks | NEW, Ordering::Relaxed);
    }

    /// Marks the inode as known to the store.
    pub(crate) fn clear_new(&self) {
        // No other thread has set marks so far; an exchange would wait for all stores to the
        // journal buffer.
        let marks = self.front.marks.load(Ordering::Relaxed);
        self.front.marks.store(marks & !NEW, Ordering::Release);
    }

    /// Marks the access time as newer than the store's.
    pub(crate) fn mark_lazy_time(&self) {
        self.front.marks.fetch_or(LAZY_TIME, Ordering::AcqRel);
    }

    /// Is the access time newer than the store's?
    pub(crate) fn has_lazy_time(&self) -> bool {
        self.front.marks.load(Ordering::Acquire) & LAZY_TIME != 0
    }

    /// Is the access time newer than the store's? Clears the mark; the caller writes the time.
    pub(crate) fn take_lazytime(&self) -> bool {
        // Mostly it is not, and then nothing is written.
        self.has_lazy_time()
            && self.front.marks.fetch_and(!LAZY_TIME, Ordering::AcqRel) & LAZY_TIME != 0
    }
}
