//! How large nodes are made. Nodes of any shape can be read.

use super::node::{BLOCK, HEADER};
use super::pointer::{NODE_BLOCKS_MAX, Pointer};
use super::record::{Key, Record};

/// The size of new nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Length of a node in blocks of 4 KiB.
    blocks: u16,
    /// Bytes of it that are used. Less than all only in tests, for trees that are high and small.
    fill: usize,
    /// Most records in a block of records.
    run: u8,
}

/// Fewest pointers of a full interior node.
const FANOUT_MIN: usize = 3;

impl Shape {
    /// Nodes of 16 KiB.
    pub const STANDARD: Self = Self::of(4);

    /// Nodes of `blocks` blocks.
    ///
    /// # Panics
    /// If that is not 2 to [`NODE_BLOCKS_MAX`]: a leaf must hold the longest record.
    #[must_use]
    pub const fn of(blocks: u16) -> Self {
        assert!(blocks >= 2 && blocks <= NODE_BLOCKS_MAX, "no such node");
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

    /// Where a node is full.
    pub(super) fn fill(self) -> usize {
        self.fill
    }

    /// Below this a node is joined with its neighbour.
    pub(super) fn low(self) -> usize {
        self.fill / 3
    }

    pub(super) fn run<R: Record>(self) -> u8 {
        self.run.min(R::PER_BLOCK)
    }

    /// A block of records that is longer than this is closed: leaves are cut between blocks.
    pub(super) fn run_bytes(self) -> usize {
        self.fill / 8
    }

    /// Pointers of a full interior node.
    pub(super) fn fanout<K: Key>(self) -> usize {
        ((self.fill - HEADER) / (K::LEN + Pointer::LEN)).max(FANOUT_MIN)
    }

    /// Interior nodes with fewer pointers are joined with their neighbour.
    pub(super) fn fanout_low<K: Key>(self) -> usize {
        (self.fanout::<K>() / 3).max(2)
    }
}

impl Default for Shape {
    fn default() -> Self {
        Self::STANDARD
    }
}
