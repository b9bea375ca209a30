//! What is noted of an inode in single bits, each of which changes by itself.

use std::sync::atomic::Ordering;

use super::{Inode, Object};
use crate::clock;
use crate::types::{FileType, Time};

/// A mark: an access time has not reached the store.
pub(super) const LAZY_TIME: u8 = 1;
/// A mark: nothing of a file's content is elsewhere.
pub(super) const COMPLETE: u8 = 1 << 1;
/// A mark: of each page of a file's content it is known what it is.
pub(super) const MAPPED: u8 = 1 << 4;
/// A mark: it was read ahead, and nobody has used it yet.
pub(super) const AHEAD: u8 = 1 << 5;
/// A mark: if a file is not mapped, each page before its end has data.
pub(super) const FULL: u8 = 1 << 6;
/// A mark: quotas count it.
pub(super) const COUNTED: u8 = 1 << 2;
/// A mark: its store has not heard of it yet.
pub(super) const UNBORN: u8 = 1 << 3;

/// A mark: its times were told since it changed last, or may have been.
pub(super) const TOLD: u8 = 1 << 7;

/// The time of one change of several inodes: another one than any of them told.
pub(crate) fn time_of_changes<'i>(inodes: impl IntoIterator<Item = &'i Inode>) -> Time {
    let told = inodes
        .into_iter()
        .fold(false, |told, inode| inode.takes_told() | told);
    if told {
        clock::fresh()
    } else {
        clock::change()
    }
}

/// What is known of a file's content when its inode is made known. Of what was loaded the times may have been told before,
/// or by a store's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Known {
    /// All of it is in memory.
    All = COMPLETE | MAPPED,
    /// The store has it; each page before its end has data.
    Full = FULL | TOLD,
    /// The store has it.
    Nothing = TOLD,
}

impl Object {
    /// Its times are about to be told: what changes from now on takes another time. Writes only if that was not so.
    ///
    /// A change that is under way at this moment may have looked already; it has the time of the telling at the latest, and
    /// the caller sees it or not, as with any two calls at once.
    #[inline]
    pub(crate) fn tells_times(&self) {
        if self.front.marks.load(Ordering::Relaxed) & TOLD == 0 {
            self.front.marks.fetch_or(TOLD, Ordering::AcqRel);
        }
    }

    /// The time of a change of it that is made now: another one than any that was told.
    #[inline]
    pub(crate) fn time_of_change(&self) -> Time {
        if self.takes_told() {
            clock::fresh()
        } else {
            clock::change()
        }
    }

    /// Were its times told? From now on not, the caller sees to it.
    #[inline]
    pub(crate) fn takes_told(&self) -> bool {
        self.front.marks.load(Ordering::Relaxed) & TOLD != 0
            && self.front.marks.fetch_and(!TOLD, Ordering::AcqRel) & TOLD != 0
    }

    /// Are all bytes of the file in memory (else the store has to be asked first)?
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        // Acquire pairs with the release in `completed`: who sees the mark sees the pages.
        self.front.marks.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Is it known of each page of the file whether there is anything? (Else the store has to be asked
    /// first.)
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.front.marks.load(Ordering::Acquire) & MAPPED != 0
    }

    /// They are; to be said under the lock of the pages, like all that follows.
    pub(crate) fn completed(&self) {
        let marks = &self.front.marks;
        marks.fetch_or(COMPLETE | MAPPED, Ordering::Release);
    }

    /// It is known, but not all of them are. Pages must have begun to change.
    pub(crate) fn partial(&self) {
        let marks = &self.front.marks;
        marks.fetch_or(MAPPED, Ordering::Relaxed);
        marks.fetch_and(!COMPLETE, Ordering::Release);
    }

    /// Is it known how much space it takes?
    #[inline]
    pub(crate) fn has_known_space(&self) -> bool {
        let marks = self.front.marks.load(Ordering::Acquire);
        marks & (MAPPED | FULL) != 0
            || self.kind() != FileType::Regular
            // Behind its end there may be space, but not without a word.
            || (self.size() == 0 && !self.may_have_extra_attrs())
            || self.stored_pages().is_some()
    }

    /// Has each page before its end data, if it is not mapped?
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.front.marks.load(Ordering::Acquire) & FULL != 0
    }

    /// Each page has data; of a file that is not mapped.
    pub(crate) fn full(&self) {
        self.front.marks.fetch_or(FULL, Ordering::Release);
    }

    /// Nothing is known any more but that each page has data. Pages must have begun to change.
    pub(crate) fn unmapped(&self) {
        self.full();
        let marks = &self.front.marks;
        marks.fetch_and(!(COMPLETE | MAPPED), Ordering::Release);
    }

    /// Nothing is known any more but, perhaps, that each page has data. Pages must have begun to change.
    pub(super) fn unknown(&self, full: bool) {
        let known = if full { FULL } else { 0 };
        let renewed = |marks| Some(marks & !(COMPLETE | MAPPED | FULL) | known);
        let marks = &self.front.marks;
        let _ = marks.fetch_update(Ordering::Release, Ordering::Relaxed, renewed);
    }

    /// Has its store not heard of it yet? Then nobody but its maker may change it, marks included: others do not
    /// find it.
    #[inline]
    pub(crate) fn is_unborn(&self) -> bool {
        self.front.marks.load(Ordering::Acquire) & UNBORN != 0
    }

    /// It has not: to be said before anybody can find it.
    pub(crate) fn unborn(&self) {
        // Nobody else marks it yet: no exchange, which would wait for all that was written to it.
        let marks = self.front.marks.load(Ordering::Relaxed);
        self.front.marks.store(marks | UNBORN, Ordering::Relaxed);
    }

    /// Now it has.
    pub(crate) fn born(&self) {
        // Nobody else has marked it so far: no exchange, which would wait for all that was written to the store.
        let marks = self.front.marks.load(Ordering::Relaxed);
        self.front.marks.store(marks & !UNBORN, Ordering::Release);
    }

    /// An access time is newer here than in the store.
    pub(crate) fn mark_lazy_time(&self) {
        self.front.marks.fetch_or(LAZY_TIME, Ordering::AcqRel);
    }

    /// Was it?
    pub(crate) fn has_lazy_time(&self) -> bool {
        self.front.marks.load(Ordering::Acquire) & LAZY_TIME != 0
    }

    /// Was it? From now on not, the caller sees to it.
    pub(crate) fn take_lazytime(&self) -> bool {
        // Mostly it was not, and then nothing is written.
        self.has_lazy_time()
            && self.front.marks.fetch_and(!LAZY_TIME, Ordering::AcqRel) & LAZY_TIME != 0
    }
}
