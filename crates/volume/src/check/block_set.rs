//! Sets of blocks, such as the referenced ones: one bit for each block of the volume.

use std::sync::atomic::{AtomicU64, Ordering};

use super::finding::{Finding, Owner};
use super::sink::Sink;
use crate::space::{Extent, Layout};

/// A set of blocks of the groups.
#[derive(Debug)]
pub(crate) struct BlockSet {
    layout: Layout,
    words: Vec<AtomicU64>,
}

impl Clone for BlockSet {
    fn clone(&self) -> Self {
        let words = self.words.iter();
        let words = words.map(|word| AtomicU64::new(word.load(Ordering::Relaxed)));
        Self {
            layout: self.layout,
            words: words.collect(),
        }
    }
}

impl BlockSet {
    pub(crate) fn new(layout: Layout) -> Self {
        let words = layout.end.saturating_sub(layout.start).div_ceil(64);
        let words = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { layout, words }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Claims these blocks for `owner`. Reports blocks outside all groups, and the first one
    /// claimed before.
    pub(super) fn reference(&self, extent: Extent, owner: Owner, sink: &Sink) {
        let (start, length) = (extent.start, extent.length);
        if !self.layout.holds(extent) {
            sink.put(Finding::Outside {
                start,
                length,
                owner,
            });
        } else if let Some(block) = self.insert(extent) {
            sink.put(Finding::Shared { block, owner });
        }
    }

    /// Adds blocks, unless they are outside all groups. Returns the first that was there before.
    pub(crate) fn insert(&self, extent: Extent) -> Option<u64> {
        if !self.layout.holds(extent) {
            return None;
        }
        let mut at = extent.start - self.layout.start;
        let end = at + extent.length;
        let mut first = None;
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let count = (64 - bit).min(end - at);
            let mask = (u64::MAX >> (64 - count)) << bit;
            // Relaxed: the bits are independent, and counted after a join.
            let before = self.words[word as usize].fetch_or(mask, Ordering::Relaxed) & mask;
            if before != 0 && first.is_none() {
                first = Some(self.layout.start + word * 64 + u64::from(before.trailing_zeros()));
            }
            at += count;
        }
        first
    }

    /// Removes a block.
    #[cfg(test)]
    pub(crate) fn remove(&self, block: u64) {
        let at = block - self.layout.start;
        self.words[(at / 64) as usize].fetch_and(!(1 << (at % 64)), Ordering::Relaxed);
    }

    /// Is this block in the set?
    pub(crate) fn has(&self, block: u64) -> bool {
        let at = block.saturating_sub(self.layout.start);
        let word = self.words.get((at / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (at % 64) & 1 != 0)
    }

    /// Is one of these blocks in the set? False outside the groups.
    pub(crate) fn overlaps(&self, extent: Extent) -> bool {
        self.layout.holds(extent) && (extent.start..extent.end()).any(|block| self.has(block))
    }

    /// The number of blocks.
    pub(super) fn count(&self) -> u64 {
        let words = self.words.iter();
        words
            .map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout {
            volume: [7; 16],
            start: 100,
            end: 400,
            group_blocks: 150,
            bundle: 1,
        }
    }

    #[test]
    fn blocks_that_two_have_are_found_at_the_first_of_them() {
        let (references, sink) = (BlockSet::new(layout()), Sink::new(9));
        let owner = Owner::File(holdfast_types::Ino(5));
        references.reference(Extent::new(110, 100), owner, &sink);
        references.reference(Extent::new(102, 8), owner, &sink);
        references.reference(Extent::new(210, 3), owner, &sink);
        assert_eq!(references.count(), 111);
        assert!(references.has(212) && !references.has(213) && !references.has(100));
        references.reference(Extent::new(209, 2), owner, &sink);
        references.reference(Extent::new(240, 20), owner, &sink);
        let outside = Finding::Outside {
            start: 240,
            length: 20,
            owner,
        };
        let (findings, more) = sink.into_findings();
        assert_eq!(findings, [Finding::Shared { block: 209, owner }, outside]);
        assert_eq!(more, 0);
    }
}
