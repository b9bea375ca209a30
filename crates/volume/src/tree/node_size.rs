//! The size of new nodes. Nodes of any size can be read.

use super::data::Contents;
use super::node::{BLOCK, HEADER, OFFSET};
use super::pointer::{NODE_BLOCKS_MAX, Pointer};
use super::record::{Key, Record};

/// The size of new nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSize {
    /// Length of a node in blocks of 4 KiB.
    blocks: u16,
    /// Used bytes of it. Fewer than all only in tests, for high and small trees.
    fill: usize,
    /// Most records in a block of records.
    run: u8,
}

/// Fewest pointers of a full interior node.
const FANOUT_MIN: usize = 3;

/// Blocks of a leaf that holds one of the longest records alone.
const LONGEST_BLOCKS: usize = 2;
const _: () = {
    let longest = HEADER + OFFSET + 1 + Contents::LEN_MAX;
    assert!(
        longest <= LONGEST_BLOCKS * BLOCK,
        "no leaf for the longest record"
    );
};

impl NodeSize {
    /// Nodes of 16 KiB.
    pub const STANDARD: Self = Self::of(4);
    /// Nodes of one block (two for a record that fits into none), where space is in small pieces.
    pub const SMALLEST: Self = Self::of(1);

    /// Nodes of `blocks` blocks.
    ///
    /// # Panics
    /// If that is not 1 to [`NODE_BLOCKS_MAX`].
    #[must_use]
    pub const fn of(blocks: u16) -> Self {
        assert!(blocks >= 1 && blocks <= NODE_BLOCKS_MAX, "no such node");
        Self {
            blocks,
            fill: blocks as usize * BLOCK,
            run: u8::MAX,
        }
    }

    /// Nodes that are full at `fill` bytes, with blocks of `run` records.
    #[cfg(test)]
    pub(crate) fn tiny(fill: usize, run: u8) -> Self {
        Self {
            fill,
            run,
            ..Self::of(2)
        }
    }

    /// Length of a node in blocks.
    #[must_use]
    pub fn blocks(self) -> u16 {
        self.blocks
    }

    /// Length of a node in bytes.
    pub(super) fn len(self) -> usize {
        usize::from(self.blocks) * BLOCK
    }

    /// Blocks of a leaf with `used` bytes: more than usual only for a long record alone.
    pub(super) fn leaf_blocks(self, used: usize) -> u16 {
        self.blocks.max(used.div_ceil(BLOCK) as u16)
    }

    /// The most bytes of a leaf with one record.
    pub(super) fn longest(self) -> usize {
        self.len().max(LONGEST_BLOCKS * BLOCK)
    }

    /// The bytes of a full node.
    pub(super) fn fill(self) -> usize {
        self.fill
    }

    /// The fewest bytes of a node that is not joined with its neighbour.
    pub(super) fn low(self) -> usize {
        self.fill / 3
    }

    pub(super) fn run<R: Record>(self) -> u8 {
        self.run.min(R::PER_BLOCK)
    }

    /// The most bytes of a block of records: leaves are divided between blocks.
    pub(super) fn run_bytes(self) -> usize {
        self.fill / 8
    }

    /// Pointers of a full interior node.
    pub(super) fn fanout<K: Key>(self) -> usize {
        ((self.fill - HEADER) / (K::LEN + Pointer::LEN)).max(FANOUT_MIN)
    }

    /// The fewest pointers of an interior node that is not joined with its neighbour.
    pub(super) fn fanout_low<K: Key>(self) -> usize {
        (self.fanout::<K>() / 3).max(2)
    }
}

impl Default for NodeSize {
    fn default() -> Self {
        Self::STANDARD
    }
}
