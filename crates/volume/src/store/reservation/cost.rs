//! Worst-case cost of an operation: blocks for pages, tree nodes, blocks of the journal. Computed
//! from the core's [`Intent`].

use holdfast_core::store::{Change, Intent};

use crate::block::BLOCK;
use crate::journal;
use crate::store::file::INLINE_MAX;
use crate::store::memtable::{Roots, TreeCost};

/// Blocks of a node.
const NODE: u64 = 4;
/// Children of an interior node, at least, in a large tree.
const CHILDREN_MIN: u64 = 64;
/// Extent records of one file in a leaf, at least, where there are many.
const EXTENTS_MIN: u64 = 160;
/// Longest value that stays in a leaf; longer ones get blocks of their own.
const VALUE_INLINE: u64 = 2048;
/// Journal bytes of a record besides names and data, at most.
const RECORD_MAX: u64 = journal::RECORD_MAX as u64;
/// Journal bytes of a batch: its head, and the frame headers. It spans two frames if it has an
/// attribute of maximal length.
const FRAME: u64 = (journal::HEAD_MAX + 2 * journal::FRAME_HEADER) as u64;
/// Bytes of an extent in the journal and in a leaf, at most.
const PLACE: u64 = 32;

impl TreeCost {
    /// The cost of a batch, as far as it shows: only the core knows what moves within a file.
    #[inline]
    pub(in crate::store) fn of(batch: &[Change<'_>]) -> Self {
        Cost::of(&Intent::of(batch)).tree_cost
    }

    /// The cost of so many extents: each may split two neighbours.
    pub(in crate::store) const fn of_places(places: u64) -> Self {
        Self {
            keys: 2 * places,
            bytes: 3 * PLACE * places,
        }
    }

    /// Blocks that this adds to a checkpoint, at most: each key splits a leaf and rewrites `above`
    /// interior nodes.
    #[inline]
    pub(in crate::store) const fn blocks_at_most(self, above: u64) -> u64 {
        (2 + above) * NODE * self.keys + self.added() + 1
    }

    /// Blocks that a checkpoint of trees with so many nodes takes, at most, before it frees any.
    pub(in crate::store) fn blocks(self, roots: &Roots, nodes: u64) -> u64 {
        // One node more a level, where a tree grows.
        let paths = roots
            .each()
            .map(|root| root.map_or(1, |root| u64::from(root.level) + 2));
        // Each changed leaf may have its own path of interior nodes.
        let above = (above(roots) * self.keys).min(nodes / CHILDREN_MIN);
        NODE * (2 * self.keys.min(nodes) + above + paths.iter().sum::<u64>()) + self.added()
    }

    /// Blocks by which the trees grow, at most, once a checkpoint is done: each full leaf may be
    /// split.
    pub(in crate::store) fn kept(self, nodes: u64) -> u64 {
        NODE * self.keys.min(nodes) + self.added()
    }

    /// Leaves are at least a third full, mostly completely.
    const fn added(self) -> u64 {
        2 * self.bytes / BLOCK as u64
    }
}

/// Interior nodes between a leaf and the root of the highest of these trees.
pub(in crate::store) fn above(roots: &Roots) -> u64 {
    let levels = roots.each().into_iter().flatten();
    let max_ino_seen = levels.map(|root| u64::from(root.level)).max();
    max_ino_seen.unwrap_or(0).saturating_sub(1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Cost {
    /// Blocks for pages.
    pub(in crate::store) pages: u64,
    pub(in crate::store) tree_cost: TreeCost,
    /// Blocks of the journal.
    pub(in crate::store) journal: u64,
}

impl Cost {
    #[inline]
    pub(in crate::store) const fn of(intent: &Intent) -> Self {
        let Intent {
            class: _,
            pages,
            moved,
            written,
            touched,
            small_bytes,
            ranges,
            pieces,
            allocated,
            inodes,
            records,
            ended,
            names,
            name_bytes,
            left,
            left_bytes,
            replaced,
            values,
            value_bytes,
        } = *intent;
        // Keys of one range of a file are neighbours: inline bytes first, extents after them. So
        // they take the leaves at both ends, one more where records are added, and full leaves
        // between.
        let of_files = 2 * ranges + (2 * pieces + written + touched) / EXTENTS_MIN;
        // Each name has an entry and a hash.
        let of_names = (2 * (names + left)).saturating_sub(replaced);
        // Data beyond the inline limit goes neither to the journal nor into the trees.
        let inline = INLINE_MAX as u64 * (ranges + pieces);
        let small_bytes = if small_bytes < inline {
            small_bytes
        } else {
            inline
        };
        // The inode, its orphan record, and both ends of its content and attributes.
        let of_ended = 4 * ended;
        let rounded = match value_bytes > VALUE_INLINE {
            true => values * BLOCK as u64,
            false => 0,
        };
        let places = written + allocated + touched + 2 * (ranges + pieces) + moved;
        let tree_cost = TreeCost {
            keys: inodes + records + of_ended + of_names + values + of_files,
            bytes: 160 * inodes
                + 40 * records
                + 64 * (2 * ended + names + values)
                + name_bytes
                + value_bytes
                + rounded
                + small_bytes
                + PLACE * places,
        };
        let items = inodes + records + ended + names + left + values + ranges + pieces;
        let bytes = name_bytes + left_bytes + value_bytes + small_bytes + PLACE * allocated;
        Self {
            pages: pages + moved,
            tree_cost,
            journal: match items {
                0 => 0,
                _ => (FRAME + RECORD_MAX * items + bytes).div_ceil(BLOCK as u64),
            },
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
        let one = TreeCost::of(std::slice::from_ref(&leave));
        let many = TreeCost::of(&vec![leave; 1000]);
        assert_eq!(many.keys, 1000 * one.keys);
        assert_eq!(many.blocks(&roots, one.keys), one.blocks(&roots, one.keys));
        assert!(many.blocks(&roots, 100) > one.blocks(&roots, 100));
        let bytes = 1 << 20;
        let more = TreeCost { bytes, ..one };
        assert!(more.blocks(&roots, 1) >= one.blocks(&roots, 1) + 2 * bytes / BLOCK as u64);
    }

    #[test]
    fn a_checkpoint_takes_no_more_than_the_sum_of_what_each_was_charged() {
        let roots = Roots::default();
        let some = |keys, bytes| TreeCost { keys, bytes };
        for nodes in [1, 50, 1000, 100_000] {
            for (one, other) in [
                (some(1, 0), some(300, 70_000)),
                (some(40, 9), some(7, 4096)),
            ] {
                let both = (one + other).blocks(&roots, nodes);
                assert!(both <= one.blocks(&roots, nodes) + other.blocks_at_most(above(&roots)));
                assert!((one + other).kept(nodes) <= both);
            }
        }
    }
}
