//! What an operation may cost: blocks for pages, nodes of trees, blocks of the journal. All of it is computed
//! here, from what the core [intends](Intent).

use holdfast_core::store::{Change, Intent};

use crate::store::file::content::INLINE_MAX;
use crate::store::memtable::Growth;
use crate::store::memtable::layers::Roots;
use crate::{BLOCK, journal};

/// Blocks of a node.
const NODE: u64 = 4;
/// Children of an interior node that is no longer than it must be, where there are many: there are more.
const CHILDREN_MIN: u64 = 64;
/// Records of extents of one file that a leaf has at least, where there are many.
const EXTENTS_MIN: u64 = 160;
/// Bytes of values that lie in a leaf: longer ones get blocks of their own.
const VALUE_INLINE: u64 = 2048;
/// Bytes of the journal that a record may take beside names and data.
const RECORD_MAX: u64 = journal::RECORD_MAX as u64;
/// And a batch: its head, and the headers of the frames that it is in, which are two if it is as long as an attribute may be.
const FRAME: u64 = (journal::HEAD_MAX + 2 * journal::FRAME_HEADER) as u64;
/// Bytes of the journal, and of a leaf, that a place takes at most.
const PLACE: u64 = 32;

impl Growth {
    /// What a batch changes, as far as it says so: what moves within a file is known to the core alone.
    #[inline]
    pub(in crate::store) fn of(batch: &[Change<'_>]) -> Self {
        Cost::of(&Intent::of(batch)).growth
    }

    /// What so many places change that pages got: at both ends of each a record, and one for it.
    pub(in crate::store) const fn of_places(places: u64) -> Self {
        Self {
            keys: 2 * places,
            bytes: 3 * PLACE * places,
        }
    }

    /// Blocks that this adds at most to what a checkpoint takes: of each key a leaf that becomes two, and the nodes
    /// `above` it, but for the root.
    #[inline]
    pub(in crate::store) const fn blocks_at_most(self, above: u64) -> u64 {
        (2 + above) * NODE * self.keys + self.added() + 1
    }

    /// Blocks that a checkpoint of these trees, of so many nodes, takes at most before it frees any.
    pub(in crate::store) fn blocks(self, roots: &Roots, nodes: u64) -> u64 {
        // Of each level one node more, where a tree grows.
        let paths = roots
            .each()
            .map(|root| root.map_or(1, |root| u64::from(root.level) + 2));
        // Each leaf that changes may lie below interior nodes of its own.
        let above = (above(roots) * self.keys).min(nodes / CHILDREN_MIN);
        NODE * (2 * self.keys.min(nodes) + above + paths.iter().sum::<u64>()) + self.added()
    }

    /// Blocks that the trees have more at most once a checkpoint is done: each leaf that was full may be two.
    pub(in crate::store) fn kept(self, nodes: u64) -> u64 {
        NODE * self.keys.min(nodes) + self.added()
    }

    /// Leaves are at least a third full, mostly all.
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

/// What an operation may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Blocks for pages.
    pub(super) pages: u64,
    pub(super) growth: Growth,
    /// Blocks of the journal.
    pub(super) journal: u64,
}

impl Cost {
    /// What these intentions cost at most.
    #[inline]
    pub(super) const fn of(intent: &Intent) -> Self {
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
            again,
            values,
            value_bytes,
        } = *intent;
        // What a stretch of a file changes are neighbours: bytes kept inline come first, extents behind them. So they lie in
        // leaves side by side: those at both ends, one more where records come, and those between, which are full of them.
        let of_files = 2 * ranges + (2 * pieces + written + touched) / EXTENTS_MIN;
        // A name is found by its place and by its hash.
        let of_names = (2 * (names + left)).saturating_sub(again);
        // What is written to a page that does not stay inline goes past the journal, and past the trees.
        let inline = INLINE_MAX as u64 * (ranges + pieces);
        let small_bytes = if small_bytes < inline {
            small_bytes
        } else {
            inline
        };
        // The inode, its place among those without names, and of its content and attributes what lies at both ends.
        let of_ended = 4 * ended;
        let rounded = match value_bytes > VALUE_INLINE {
            true => values * BLOCK as u64,
            false => 0,
        };
        let places = written + allocated + touched + 2 * (ranges + pieces) + moved;
        let growth = Growth {
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
            growth,
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
        let one = Growth::of(std::slice::from_ref(&leave));
        let many = Growth::of(&vec![leave; 1000]);
        assert_eq!(many.keys, 1000 * one.keys);
        assert_eq!(many.blocks(&roots, one.keys), one.blocks(&roots, one.keys));
        assert!(many.blocks(&roots, 100) > one.blocks(&roots, 100));
        let bytes = 1 << 20;
        let more = Growth { bytes, ..one };
        assert!(more.blocks(&roots, 1) >= one.blocks(&roots, 1) + 2 * bytes / BLOCK as u64);
    }

    #[test]
    fn a_checkpoint_takes_no_more_than_the_sum_of_what_each_was_charged() {
        let roots = Roots::default();
        let some = |keys, bytes| Growth { keys, bytes };
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
