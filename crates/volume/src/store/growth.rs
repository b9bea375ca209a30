//! How much of the trees a batch changes at most: what a checkpoint will have to write.

use holdfast_core::store::Change;
use std::ops::Add;

use super::content::INLINE_MAX;
use super::layers::Roots;
use crate::BLOCK;

/// Blocks of a node.
const NODE: u64 = 4;
/// Records of a node that is no longer than it must be: fewer than the shortest leaf has.
const RECORDS_MIN: u64 = 3;

/// Changes of the trees, at most so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Growth {
    /// Keys that change: in the worst case each lies in a leaf of its own.
    pub(super) keys: u64,
    /// Bytes of records that come.
    pub(super) bytes: u64,
}

impl Growth {
    /// What a batch changes.
    pub(super) fn of(batch: &[Change<'_>]) -> Self {
        batch
            .iter()
            .map(Self::of_one)
            .fold(Self::default(), Add::add)
    }

    fn of_one(change: &Change<'_>) -> Self {
        let (keys, bytes) = match change {
            Change::Create { target, .. } => (3, 160 + target.map_or(0, <[u8]>::len)),
            Change::Attributes { .. } => (2, 0),
            Change::Enter { name, .. } => (2, 64 + name.len()),
            Change::Leave { .. } => (2, 0),
            Change::Write { data, .. } if data.len() <= INLINE_MAX => (2, data.len() + 64),
            Change::Write { data, .. } => {
                let blocks = data.len().div_ceil(BLOCK);
                (1 + blocks, 32 * (1 + blocks))
            }
            Change::Xattr { name, value, .. } => (
                4,
                64 + name.len() + value.map_or(0, |value| value.len() + BLOCK),
            ),
            Change::Truncate { .. } | Change::Zero { .. } | Change::Allocate { .. } => (4, 128),
            Change::Collapse { .. } | Change::Insert { .. } | Change::Free { .. } => (8, 64),
        };
        Self {
            keys: keys as u64,
            bytes: bytes as u64,
        }
    }

    /// Blocks that this adds at most to what a checkpoint takes.
    pub(super) fn blocks_at_most(self) -> u64 {
        NODE * self.keys + 2 * self.bytes / BLOCK as u64 + 1
    }

    /// Blocks that a checkpoint of these trees takes at most, before it frees any.
    pub(super) fn blocks(self, roots: &Roots) -> u64 {
        let trees = [
            roots.inodes,
            roots.entries,
            roots.hashes,
            roots.data,
            roots.orphans,
        ];
        let (mut nodes, mut paths) = (0, 0);
        for root in trees {
            nodes += root.map_or(0, |root| root.records / RECORDS_MIN + 1);
            // Of each level one node more, where a tree grows.
            paths += root.map_or(1, |root| u64::from(root.level) + 2);
        }
        // Leaves are at least half full.
        let added = 2 * self.bytes / BLOCK as u64;
        NODE * (self.keys.min(nodes) + paths) + added
    }
}

impl Add for Growth {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            bytes: self.bytes + other.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::Ino;

    #[test]
    fn no_more_nodes_are_written_than_there_are() {
        let roots = Roots::default();
        let leave = Change::Leave {
            dir: Ino(1),
            name: b"name",
            cookie: 1,
        };
        let one = Growth::of(std::slice::from_ref(&leave));
        let many = Growth::of(&vec![leave; 1000]);
        assert_eq!(many.keys, 1000 * one.keys);
        assert_eq!(many.blocks(&roots), one.blocks(&roots));
        let bytes = 1 << 20;
        let more = Growth { bytes, ..one };
        assert!(more.blocks(&roots) >= one.blocks(&roots) + 2 * bytes / BLOCK as u64);
    }
}
