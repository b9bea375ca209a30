//! Pages that take space without a frame, kept beside the frames for the writer.

use super::flight::Flights;
use crate::page_set::PageSet;
use std::ops::Range;

/// Pages without a frame that are not holes.
///
/// *Invariants.* No page is in both sets, and none has a frame.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// Allocated, and never written: they read as zeros.
    unwritten: PageSet,
    /// The owner can fill them with their bytes.
    unloaded: PageSet,
    /// Reads of absent pages that are under way.
    pub(super) flights: Flights,
}

impl Unwritten {
    /// How many pages there are.
    pub(super) fn pages(&self) -> u64 {
        self.unwritten.pages() + self.unloaded.pages()
    }

    /// How many of them are absent.
    pub(super) fn unloaded_pages(&self) -> u64 {
        self.unloaded.pages()
    }

    /// The number of entries, which is their cost.
    pub(super) fn entries(&self) -> u64 {
        self.unwritten.entries() + self.unloaded.entries()
    }

    /// A bit for each page of a group that is unwritten or absent.
    pub(super) fn mask(&self, group: u64) -> u64 {
        self.unwritten.mask(group) | self.unloaded.mask(group)
    }

    /// How many of `pages` are unwritten or absent.
    pub(super) fn count_in(&self, pages: Range<u64>) -> u64 {
        self.unwritten.count_in(pages.clone()) + self.unloaded.count_in(pages)
    }

    /// The first run of consecutive absent pages within `pages`.
    pub(super) fn next_unloaded(&self, pages: Range<u64>) -> Option<Range<u64>> {
        self.unloaded.first_in(pages)
    }

    /// Makes `pages` unwritten, except absent ones.
    pub(super) fn allocate(&mut self, pages: Range<u64>) {
        let mut at = pages.start;
        while at < pages.end {
            let unloaded = self.unloaded.first_in(at..pages.end);
            let unloaded = unloaded.unwrap_or(pages.end..pages.end);
            self.unwritten.insert(at..unloaded.start);
            at = unloaded.end;
        }
    }

    /// Makes `pages` absent.
    pub(super) fn mark_unloaded(&mut self, pages: Range<u64>) {
        self.flights.cut(&pages);
        self.unwritten.remove(pages.clone());
        self.unloaded.insert(pages);
    }

    /// Removes `pages` from both sets.
    pub(super) fn remove(&mut self, pages: Range<u64>) {
        self.flights.cut(&pages);
        self.unwritten.remove(pages.clone());
        self.unloaded.remove(pages);
    }

    /// Moves the pages from page `from` on by `delta`; see [`PageSet::shift`].
    pub(super) fn shift(&mut self, from: u64, delta: i64) {
        self.flights.cut(&(from..u64::MAX));
        self.unwritten.shift(from, delta);
        self.unloaded.shift(from, delta);
    }
}
