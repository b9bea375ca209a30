use super::super::{Extent, bits};
use std::collections::BTreeMap;

/// Pieces up to which a vector is searched.
const FEW: usize = 16;

/// A preallocation: blocks set aside for a stretch of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Piece {
    /// Tells it from others that had the same place.
    pub(in super::super) id: u64,
    /// The first block, in blocks of the file.
    pub(super) logical: u64,
    pub(in super::super) extent: Extent,
    /// A bit for each block that the file has got. (A file that is filled in random order gets thousands of
    /// ranges from a piece, which cannot be longer than a group: bits are less, and found without a search.)
    used: Vec<u64>,
    /// How many bits are clear.
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

    /// Blocks that are still set aside.
    pub(in super::super) fn free(&self) -> u64 {
        self.free
    }

    /// The extents that are still set aside.
    pub(in super::super) fn unused(&self) -> Vec<Extent> {
        bits::clear_runs(&self.used, 0, self.extent.length as u32)
            .map(|(from, to)| {
                Extent::new(self.extent.start + u64::from(from), u64::from(to - from))
            })
            .collect()
    }

    /// Takes blocks from `logical` on, at most `length`: none if the file has the first already.
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
/// What was used up or discarded is not in it: a descent is steered by live pieces only, so the
/// last that begins at or before a block is the only one that can contain it (regression R-P1).
///
/// *Invariant.* Pieces do not overlap, and each has free blocks.
#[derive(Debug)]
pub(super) enum Index {
    /// Sorted.
    Few(Vec<Piece>),
    Many(BTreeMap<u64, Piece>),
}

impl Default for Index {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Index {
    /// The last piece that begins at or before a block.
    pub(super) fn at_or_before(&mut self, logical: u64) -> Option<&mut Piece> {
        match self {
            Self::Few(pieces) => {
                let behind = pieces.partition_point(|piece| piece.logical <= logical);
                pieces.get_mut(behind.checked_sub(1)?)
            }
            Self::Many(pieces) => pieces
                .range_mut(..=logical)
                .next_back()
                .map(|(_, piece)| piece),
        }
    }

    /// The first piece that begins behind a block.
    pub(super) fn behind(&self, logical: u64) -> Option<&Piece> {
        match self {
            Self::Few(pieces) => {
                pieces.get(pieces.partition_point(|piece| piece.logical <= logical))
            }
            Self::Many(pieces) => pieces
                .range(logical.checked_add(1)?..)
                .next()
                .map(|(_, piece)| piece),
        }
    }

    /// Adds a piece, which overlaps none.
    pub(super) fn insert(&mut self, piece: Piece) {
        if let Self::Few(pieces) = self
            && pieces.len() == FEW
        {
            let moved = pieces.drain(..).map(|piece| (piece.logical, piece));
            *self = Self::Many(moved.collect());
        }
        match self {
            Self::Few(pieces) => {
                let at = pieces.partition_point(|other| other.logical < piece.logical);
                pieces.insert(at, piece);
            }
            Self::Many(pieces) => {
                pieces.insert(piece.logical, piece);
            }
        }
    }

    /// Takes the piece out that begins at a block.
    pub(super) fn remove(&mut self, logical: u64) -> Option<Piece> {
        let removed = match self {
            Self::Few(pieces) => {
                let at = pieces
                    .binary_search_by_key(&logical, |piece| piece.logical)
                    .ok()?;
                Some(pieces.remove(at))
            }
            Self::Many(pieces) => pieces.remove(&logical),
        };
        if let Self::Many(pieces) = self
            && pieces.len() <= FEW / 2
        {
            *self = Self::Few(std::mem::take(pieces).into_values().collect());
        }
        removed
    }

    /// All pieces, ascending.
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = &Piece> + '_> {
        match self {
            Self::Few(pieces) => Box::new(pieces.iter()),
            Self::Many(pieces) => Box::new(pieces.values()),
        }
    }

    /// Takes out the pieces that end behind a block.
    pub(super) fn remove_from(&mut self, logical: u64) -> Vec<Piece> {
        let starts: Vec<u64> = self
            .iter()
            .filter(|piece| piece.end() > logical)
            .map(|piece| piece.logical)
            .collect();
        starts
            .into_iter()
            .filter_map(|start| self.remove(start))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts(index: &Index) -> Vec<u64> {
        index.iter().map(|piece| piece.logical).collect()
    }

    /// Regression R-P1: what is gone must not lead a search astray.
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
        assert!(matches!(index, Index::Few(_)));
    }

    proptest! {
        /// Invariant P5: a search finds what looking at all pieces finds.
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

        /// Invariant P2: what is free of a piece is what nobody took, never more, never less.
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
