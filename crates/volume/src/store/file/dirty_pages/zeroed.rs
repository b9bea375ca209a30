//! Extents of a file that became unwritten, with old bytes that the last commit shows.
//!
//! *Invariants.* The ranges are disjoint. A range may stay longer than needed, until the file's
//! pages are taken; writes to it are then journalled without need.

use std::collections::BTreeMap;

use crate::space::Extent;
use holdfast_sync::collections::map_bytes;

/// Ranges of blocks on the device: start to end.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Zeroed(BTreeMap<u64, u64>);

impl Zeroed {
    /// Adds an extent.
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

    pub(super) fn memory(&self) -> usize {
        map_bytes::<(u64, u64)>(self.0.len())
    }

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
