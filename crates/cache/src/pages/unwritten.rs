//! Pages that take space and have no frame, kept beside the frames for the writer.

use super::flight::Flights;
use crate::page_set::PageSet;
use std::ops::Range;

/// Pages without a frame that are no holes.
///
/// *Invariants.* No page is in both sets, and none has a frame.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// Allocated, and never written: they read as zeros.
    unwritten: PageSet,
    /// Their bytes are not in memory: the owner can bring them.
    absent: PageSet,
    /// Absent pages that are being read.
    pub(super) flights: Flights,
}

impl Unwritten {
    /// How many there are.
    pub(super) fn pages(&self) -> u64 {
        self.unwritten.pages() + self.absent.pages()
    }

    /// How many of them are absent.
    pub(super) fn absent_pages(&self) -> u64 {
        self.absent.pages()
    }

    /// The entries that they take.
    pub(super) fn entries(&self) -> u64 {
        self.unwritten.entries() + self.absent.entries()
    }

    /// A bit for each page of a group that is one of them.
    pub(super) fn mask(&self, group: u64) -> u64 {
        self.unwritten.mask(group) | self.absent.mask(group)
    }

    /// How many of these pages are among them.
    pub(super) fn count_in(&self, pages: Range<u64>) -> u64 {
        self.unwritten.count_in(pages.clone()) + self.absent.count_in(pages)
    }

    /// The first absent pages among these that follow each other.
    pub(super) fn next_absent(&self, pages: Range<u64>) -> Option<Range<u64>> {
        self.absent.first_in(pages)
    }

    /// These are unwritten from now on, but for those that are absent.
    pub(super) fn allocate(&mut self, pages: Range<u64>) {
        let mut at = pages.start;
        while at < pages.end {
            let absent = self.absent.first_in(at..pages.end);
            let absent = absent.unwrap_or(pages.end..pages.end);
            self.unwritten.insert(at..absent.start);
            at = absent.end;
        }
    }

    /// These are absent from now on.
    pub(super) fn put_aside(&mut self, pages: Range<u64>) {
        self.flights.cut(&pages);
        self.unwritten.remove(pages.clone());
        self.absent.insert(pages);
    }

    /// These are none of them any more.
    pub(super) fn remove(&mut self, pages: Range<u64>) {
        self.flights.cut(&pages);
        self.unwritten.remove(pages.clone());
        self.absent.remove(pages);
    }

    /// Moves them, from page `from` on, by `delta`; see [`PageSet::shift`].
    pub(super) fn shift(&mut self, from: u64, delta: i64) {
        self.flights.cut(&(from..u64::MAX));
        self.unwritten.shift(from, delta);
        self.absent.shift(from, delta);
    }
}
