//! Places of a file that count as never written, and hold bytes that the last commit shows.
//!
//! *Invariants.* The stretches are disjoint. Those of a file whose pages were not taken since may be there for longer than
//! needed: then what is written there is only handled with more care than it takes.

use std::collections::BTreeMap;

use crate::space::Extent;
use holdfast_sync::collections::map_bytes;

/// Stretches of blocks on the device: where each begins, and ends.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Zeroed(BTreeMap<u64, u64>);

impl Zeroed {
    /// Takes note of some.
    pub(in crate::store) fn note(&mut self, place: Extent) {
        let (mut start, mut end) = (place.start, place.end());
        while let Some((first, behind)) = self.0.range(..end).next_back()
            && *behind > start
        {
            let (first, behind) = (*first, *behind);
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(behind));
        }
        self.0.insert(start, end);
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        map_bytes::<(u64, u64)>(self.0.len())
    }

    /// Is this block one of them?
    pub(in crate::store) fn has(&self, block: u64) -> bool {
        let last = self.0.range(..=block).next_back();
        last.is_some_and(|(_, end)| block < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_was_noted_however_that_overlaps() {
        let mut zeroed = Zeroed::default();
        for (start, length) in [(10, 10), (30, 2), (12, 1), (18, 13), (40, 1)] {
            zeroed.note(Extent::new(start, length));
        }
        let has: Vec<u64> = (0..50).filter(|block| zeroed.has(*block)).collect();
        let expected: Vec<u64> = (10..32).chain([40]).collect();
        assert_eq!(has, expected);
        assert_eq!(zeroed.0.len(), 2);
    }
}
