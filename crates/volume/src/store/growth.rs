//! How much of the trees a batch changes at most: what a checkpoint will have to write.

use holdfast_core::store::{Change, InodeRecord};
use std::ops::Add;

use super::content::INLINE_MAX;
use super::layers::Roots;
use crate::BLOCK;

/// Blocks of a node.
const NODE: u64 = 4;
/// Children of an interior node that is no longer than it must be, where there are many: there are more.
const CHILDREN_MIN: u64 = 64;

/// Changes of the trees, at most so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Growth {
    /// Keys that change: in the worst case each lies in a leaf of its own.
    pub(super) keys: u64,
    /// Bytes of records that come.
    pub(super) bytes: u64,
}

/// Has it a record among the orphans too?
fn orphan(inode: &InodeRecord) -> usize {
    usize::from(inode.nlink == 0)
}

impl Growth {
    /// What a name changes that goes.
    pub(super) const LEFT: Self = Self { keys: 2, bytes: 0 };
    /// What an inode changes that goes.
    pub(super) const FREED: Self = Self { keys: 8, bytes: 64 };

    /// What a batch changes.
    pub(super) fn of(batch: &[Change<'_>]) -> Self {
        batch
            .iter()
            .map(Self::of_one)
            .fold(Self::default(), Add::add)
    }

    fn of_one(change: &Change<'_>) -> Self {
        let (keys, bytes) = match change {
            Change::Create { inode, target } => return Self::of_created(inode, *target),
            Change::Attributes { inode } => return Self::of_attributes(inode),
            Change::Enter { name, .. } => return Self::of_entered(name),
            Change::Leave { .. } => return Self::LEFT,
            Change::Free { .. } => return Self::FREED,
            Change::Write { offset, data, .. }
                if offset.saturating_add(data.len() as u64) <= INLINE_MAX as u64 =>
            {
                (2, data.len() + 64)
            }
            Change::Write { data, .. } => {
                // The bytes go to blocks; the first ones of a file that was small among them.
                let blocks = data.len().div_ceil(BLOCK);
                (2 + blocks, 32 * (2 + blocks))
            }
            Change::Xattr { name, value, .. } => (
                4,
                64 + name.len() + value.map_or(0, |value| value.len() + BLOCK),
            ),
            Change::Truncate { .. } | Change::Zero { .. } | Change::Allocate { .. } => (4, 128),
            Change::Collapse { .. } | Change::Insert { .. } => (8, 64),
        };
        Self::new(keys, bytes)
    }

    #[inline]
    fn new(keys: usize, bytes: usize) -> Self {
        Self {
            keys: keys as u64,
            bytes: bytes as u64,
        }
    }

    /// What a new inode changes.
    #[inline]
    pub(super) fn of_created(inode: &InodeRecord, target: Option<&[u8]>) -> Self {
        Self::new(
            1 + orphan(inode) + usize::from(target.is_some()),
            160 + target.map_or(0, <[u8]>::len),
        )
    }

    /// What a new name changes.
    #[inline]
    pub(super) fn of_entered(name: &[u8]) -> Self {
        Self::new(2, 64 + name.len())
    }

    /// What other attributes change.
    #[inline]
    pub(super) fn of_attributes(inode: &InodeRecord) -> Self {
        Self::new(1 + orphan(inode), 0)
    }

    /// Blocks that this adds at most to what a checkpoint takes.
    pub(super) fn blocks_at_most(self) -> u64 {
        NODE * self.keys + 2 * self.bytes / BLOCK as u64 + 1
    }

    /// Blocks that a checkpoint of these trees, of so many nodes, takes at most before it frees any.
    pub(super) fn blocks(self, roots: &Roots, nodes: u64) -> u64 {
        // Of each level one node more, where a tree grows.
        let paths = roots
            .each()
            .map(|root| root.map_or(1, |root| u64::from(root.level) + 2));
        // Each leaf that changes may lie below an interior node of its own.
        let above = self.keys.min(nodes / CHILDREN_MIN);
        // Leaves are at least a third full, mostly all.
        let added = 2 * self.bytes / BLOCK as u64;
        NODE * ((self.keys + above).min(nodes) + paths.iter().sum::<u64>()) + added
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
        assert_eq!(many.blocks(&roots, one.keys), one.blocks(&roots, one.keys));
        assert!(many.blocks(&roots, 100) > one.blocks(&roots, 100));
        let bytes = 1 << 20;
        let more = Growth { bytes, ..one };
        assert!(more.blocks(&roots, 1) >= one.blocks(&roots, 1) + 2 * bytes / BLOCK as u64);
    }
}
