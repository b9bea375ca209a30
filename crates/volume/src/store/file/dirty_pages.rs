//! The dirty pages of one file.

mod zeroed;

use std::collections::BTreeMap;
use std::ops::Range;

use super::page::Changed;
use crate::space::Extent;
use holdfast_sync::collections::map_bytes;
use zeroed::Zeroed;

/// Dirty pages, by block number in the file.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Dirty {
    pages: BTreeMap<u64, Changed>,
    /// Extents that became unwritten, with old bytes that the last commit shows.
    zeroed: Zeroed,
}

impl Dirty {
    pub(in crate::store) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Bytes of memory, without the pages.
    pub(in crate::store) fn memory(&self) -> usize {
        map_bytes::<(u64, Changed)>(self.len()) + self.zeroed.memory()
    }

    /// Notes an extent that became unwritten, with old bytes that the last commit shows.
    pub(super) fn note_zeroed(&mut self, place: Extent) {
        self.zeroed.note(place);
    }

    pub(in crate::store) fn get(&self, block: u64) -> Option<&Changed> {
        self.pages.get(&block)
    }

    pub(in crate::store) fn get_mut(&mut self, block: u64) -> Option<&mut Changed> {
        self.pages.get_mut(&block)
    }

    /// Sets the changed bytes of a block.
    pub(in crate::store) fn put(&mut self, block: u64, changed: Changed) {
        self.pages.insert(block, changed);
    }

    /// The dirty blocks, ascending.
    pub(in crate::store) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.within(0..u64::MAX)
    }

    /// The dirty blocks of a range, ascending.
    pub(in crate::store) fn within(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        self.pages.range(range).map(|(block, _)| *block)
    }

    /// The first dirty block at or after `block`.
    pub(in crate::store) fn next(&self, block: u64) -> Option<u64> {
        self.within(block..u64::MAX).next()
    }

    pub(in crate::store) fn remove(&mut self, range: Range<u64>) {
        while let Some((&block, _)) = self.pages.range(range.clone()).next() {
            self.pages.remove(&block);
        }
    }

    /// Moves the pages from `from` on to `to` on, and drops those between.
    pub(super) fn shift(&mut self, from: u64, to: u64) {
        let behind = self.pages.split_off(&from);
        self.remove(to..u64::MAX);
        let moved = behind
            .into_iter()
            .map(|(block, page)| (block - from + to, page));
        self.pages.extend(moved);
    }

    /// Takes all pages, ascending, and the extents noted since the last call.
    pub(super) fn take(&mut self) -> (BTreeMap<u64, Changed>, Zeroed) {
        let Self { pages, zeroed } = std::mem::take(self);
        (pages, zeroed)
    }

    /// Puts pages back.
    pub(super) fn extend(&mut self, pages: impl Iterator<Item = (u64, Changed)>) {
        self.pages.extend(pages);
    }
}
