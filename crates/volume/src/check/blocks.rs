//! Who has which blocks: one bit for each block of the volume.

use std::sync::atomic::{AtomicU64, Ordering};

use super::finding::{Finding, Owner};
use super::sink::Sink;
use crate::space::{Extent, Layout};

/// The blocks that somebody has.
#[derive(Debug)]
pub(super) struct Claims {
    layout: Layout,
    words: Vec<AtomicU64>,
}

impl Claims {
    pub(super) fn new(layout: Layout) -> Self {
        let words = layout.end.saturating_sub(layout.start).div_ceil(64);
        let words = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { layout, words }
    }

    /// Somebody has these blocks; false if he cannot have them.
    pub(super) fn claim(&self, extent: Extent, owner: Owner, sink: &Sink) {
        if !self.layout.holds(extent) {
            sink.put(Finding::Outside {
                start: extent.start,
                length: extent.length,
                owner,
            });
            return;
        }
        let first = extent.start - self.layout.start;
        let end = first + extent.length;
        let mut shared = None;
        let mut at = first;
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let count = (64 - bit).min(end - at);
            let mask = (u64::MAX >> (64 - count)) << bit;
            // Relaxed: the bits stand for themselves, and are summed up behind a join.
            let before = self.words[word as usize].fetch_or(mask, Ordering::Relaxed) & mask;
            if before != 0 && shared.is_none() {
                shared = Some(self.layout.start + word * 64 + u64::from(before.trailing_zeros()));
            }
            at += count;
        }
        if let Some(block) = shared {
            sink.put(Finding::Shared { block, owner });
        }
    }

    /// Has somebody this block of the groups?
    pub(super) fn has(&self, block: u64) -> bool {
        let at = block.saturating_sub(self.layout.start);
        let word = self.words.get((at / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (at % 64) & 1 != 0)
    }

    /// How many blocks somebody has.
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
        let (claims, sink) = (Claims::new(layout()), Sink::new(9));
        let owner = Owner::File(holdfast_types::Ino(5));
        claims.claim(Extent::new(110, 100), owner, &sink);
        claims.claim(Extent::new(102, 8), owner, &sink);
        claims.claim(Extent::new(210, 3), owner, &sink);
        assert_eq!(claims.count(), 111);
        assert!(claims.has(212) && !claims.has(213) && !claims.has(100));
        claims.claim(Extent::new(209, 2), owner, &sink);
        claims.claim(Extent::new(240, 20), owner, &sink);
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
