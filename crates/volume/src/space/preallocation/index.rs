use super::super::{Extent, bits};
use crate::primitive::Mutex;
use std::collections::BTreeMap;
use std::sync::Weak;

/// A preallocation: blocks set aside for a stretch of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Piece {
    /// Distinguishes it from later pieces at the same place.
    pub(in super::super) id: u64,
    /// The first block, in blocks of the file.
    pub(super) logical: u64,
    pub(in super::super) extent: Extent,
    /// A bit for each block that the file has taken. (A file filled in random order takes thousands
    /// of ranges from a piece. A piece is no longer than a group, so bits are smaller than ranges
    /// and need no search.)
    used: Vec<u64>,
    /// The number of clear bits.
    free: u64,
}

impl Piece {
    pub(super) fn new(id: u64, logical: u64, extent: Extent) -> Self {
        let words = extent.length.div_ceil(u64::from(u64::BITS));
        Self {
            id,
            logical,
            extent,
            used: vec![0; words as usize],
            free: extent.length,
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.logical.saturating_add(self.extent.length)
    }

    /// Blocks that the file has not taken.
    pub(in super::super) fn free(&self) -> u64 {
        self.free
    }

    /// The extents that the file has not taken.
    pub(in super::super) fn unused(&self) -> Vec<Extent> {
        bits::clear_runs(&self.used, 0, self.extent.length as u32)
            .map(|(from, to)| {
                Extent::new(self.extent.start + u64::from(from), u64::from(to - from))
            })
            .collect()
    }

    /// Takes at most `length` blocks from `logical` on; `None` if the first is taken already.
    pub(super) fn take(&mut self, logical: u64, length: u64) -> Option<Extent> {
        let from = logical.checked_sub(self.logical)?;
        let end = from.saturating_add(length).min(self.extent.length);
        if from >= end {
            return None;
        }
        // A piece lies in one group: its blocks are far fewer than 2^32.
        let (first, end) = (from as u32, end as u32);
        let to = bits::next_set(&self.used, first, end);
        if to == first {
            return None;
        }
        bits::set(&mut self.used, first, to);
        let taken = u64::from(to - first);
        self.free -= taken;
        Some(Extent::new(self.extent.start + from, taken))
    }
}

/// The preallocations of one file, by their place in it.
///
/// It holds live pieces only, not used-up or discarded ones. So the last piece that begins at or
/// before a block is the only one that can contain it (regression R-P1).
///
/// *Invariant.* Pieces do not overlap, and each has free blocks.
#[derive(Debug, Default)]
pub(super) struct Index(pub(super) BTreeMap<u64, Piece>);

impl Index {
    /// The last piece that begins at or before a block.
    pub(super) fn at_or_before(&mut self, logical: u64) -> Option<&mut Piece> {
        let mut before = self.0.range_mut(..=logical);
        before.next_back().map(|(_, piece)| piece)
    }

    /// The first piece that begins behind a block.
    pub(super) fn behind(&self, logical: u64) -> Option<&Piece> {
        let mut behind = self.0.range(logical.checked_add(1)?..);
        behind.next().map(|(_, piece)| piece)
    }

    /// Adds a piece that overlaps no other.
    pub(super) fn insert(&mut self, piece: Piece) {
        self.0.insert(piece.logical, piece);
    }

    /// Removes the piece that begins at a block.
    pub(super) fn remove(&mut self, logical: u64) -> Option<Piece> {
        self.0.remove(&logical)
    }

    /// Removes a piece, if it is still there. The caller has its group locked.
    pub(super) fn take_out(&mut self, logical: u64, id: u64) -> Option<Piece> {
        let found = self.at_or_before(logical);
        let same = found.is_some_and(|piece| piece.id == id);
        same.then(|| self.remove(logical)).flatten()
    }

    /// Removes the pieces that end behind a block.
    pub(super) fn remove_from(&mut self, logical: u64) -> Vec<Piece> {
        let beyond = self.0.values().filter(|piece| piece.end() > logical);
        let starts: Vec<u64> = beyond.map(|piece| piece.logical).collect();
        let removed = starts.into_iter().filter_map(|start| self.remove(start));
        removed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts(index: &Index) -> Vec<u64> {
        index.0.values().map(|piece| piece.logical).collect()
    }

    /// Regression R-P1: removed pieces must not mislead a search.
    #[test]
    fn the_live_predecessor_is_found_among_many_that_are_gone() {
        let mut index = Index::default();
        for start in 0..1000 {
            index.insert(Piece::new(start, start * 8, Extent::new(start * 8, 8)));
        }
        for start in (1..1000).filter(|start| start % 500 != 0) {
            index.remove(start * 8);
        }
        assert_eq!(starts(&index), [0, 4000]);
        assert_eq!(index.at_or_before(3999).map(|piece| piece.logical), Some(0));
        assert_eq!(
            index.at_or_before(4000).map(|piece| piece.logical),
            Some(4000)
        );
    }

    proptest! {
        /// Invariant P5: a search finds the same as a scan of all pieces.
        #[test]
        fn searches_agree_with_a_scan(
            steps in prop::collection::vec((0..200_u64, any::<bool>()), 1..150),
            probes in prop::collection::vec(0..900_u64, 20),
        ) {
            let mut index = Index::default();
            let mut all = BTreeMap::new();
            for (id, (at, insert)) in (0..).zip(steps) {
                let piece = Piece::new(id, at * 4, Extent::new(at * 4, 1 + at % 4));
                if insert && !all.contains_key(&piece.logical) {
                    all.insert(piece.logical, piece.clone());
                    index.insert(piece);
                } else {
                    prop_assert_eq!(index.remove(at * 4), all.remove(&(at * 4)));
                }
                prop_assert_eq!(starts(&index), all.keys().copied().collect::<Vec<_>>());
                for &probe in &probes {
                    let before = all.values().rfind(|piece| piece.logical <= probe).cloned();
                    prop_assert_eq!(index.at_or_before(probe).cloned(), before);
                    let behind = all.values().find(|piece| piece.logical > probe);
                    prop_assert_eq!(index.behind(probe), behind);
                }
            }
        }

        /// Invariant P2: the free blocks of a piece are exactly those that were not taken.
        #[test]
        fn every_block_of_a_piece_is_given_once(
            takes in prop::collection::vec((0..50_u64, 1..20_u64), 1..40),
        ) {
            let mut piece = Piece::new(1, 100, Extent::new(7000, 40));
            let mut taken = [false; 50];
            for (from, length) in takes {
                let expected = (from..50.min(from + length))
                    .take_while(|&at| at < 40 && !taken[at as usize])
                    .count() as u64;
                let got = piece.take(100 + from, length);
                prop_assert_eq!(got, (expected > 0).then(|| Extent::new(7000 + from, expected)));
                taken[from as usize..(from + expected) as usize].fill(true);
                let free = taken[..40].iter().filter(|&&taken| !taken).count() as u64;
                prop_assert_eq!(piece.free(), free);
                let unused = piece.unused();
                prop_assert_eq!(unused.iter().map(|extent| extent.length).sum::<u64>(), free);
                let clear = |extent: &Extent| {
                    (extent.start..extent.end()).all(|at| !taken[(at - 7000) as usize])
                };
                prop_assert!(unused.iter().all(clear));
            }
        }
    }
}

/// The entry of a piece in its group.
#[derive(Debug)]
pub(in super::super) struct Listed {
    pub(super) owner: Weak<Mutex<Index>>,
    pub(super) logical: u64,
    pub(super) id: u64,
}
