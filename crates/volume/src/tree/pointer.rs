//! Pointers to nodes, and roots.

use crate::space::Extent;
use crate::varint::Reader;

/// Bits of a block number on disk.
pub const ADDRESS_BITS: u32 = 48;
/// Longest node, in blocks: offsets inside a node have 16 bits.
pub const NODE_BLOCKS_MAX: u16 = 16;
/// The highest level of a root. Nodes of 16 KiB hold 2^64 records far below it.
pub const LEVEL_MAX: u8 = 15;

/// A pointer to a node: its place, its length, and its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pointer {
    /// First block; below 2^48.
    pub block: u64,
    /// Length in blocks of 4 KiB: 1 to [`NODE_BLOCKS_MAX`].
    pub blocks: u16,
    /// The generation that wrote it.
    pub generation: u64,
}

impl Pointer {
    /// Bytes of a pointer on disk.
    pub const LEN: usize = 16;

    /// Block number and length in one word, then the generation.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        debug_assert!(
            self.block >> ADDRESS_BITS == 0,
            "block numbers have 48 bits"
        );
        let place = self.block | u64::from(self.blocks) << ADDRESS_BITS;
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&place.to_le_bytes());
        bytes[8..].copy_from_slice(&self.generation.to_le_bytes());
        bytes
    }

    /// Its blocks.
    pub(crate) fn span(&self) -> Extent {
        Extent::new(self.block, u64::from(self.blocks))
    }

    /// Reads a pointer. `None`: too short, or a length that no node has.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (place, rest) = bytes.split_first_chunk()?;
        let (generation, _) = rest.split_first_chunk()?;
        let place = u64::from_le_bytes(*place);
        let blocks = (place >> ADDRESS_BITS) as u16;
        (1..=NODE_BLOCKS_MAX).contains(&blocks).then_some(Self {
            block: place & ((1 << ADDRESS_BITS) - 1),
            blocks,
            generation: u64::from_le_bytes(*generation),
        })
    }
}

/// The root of a tree that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The topmost node.
    pub node: Pointer,
    /// Its level; 0: it is a leaf.
    pub level: u8,
    /// Records in the whole tree.
    pub records: u64,
}

impl Root {
    /// Bytes of a root on disk. An empty tree is all zeros there.
    pub const LEN: usize = 32;

    /// The bytes of `root` in a superblock or a subvolume record.
    #[must_use]
    pub fn to_bytes(root: Option<Self>) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        if let Some(root) = root {
            bytes[..16].copy_from_slice(&root.node.to_bytes());
            bytes[16..24].copy_from_slice(&root.records.to_le_bytes());
            bytes[24] = root.level;
        }
        bytes
    }

    /// Reads a root; `Some(None)` is an empty tree. `None`: no writer produces these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Option<Option<Self>> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Some(None);
        }
        let mut reader = Reader::new(bytes);
        let node = Pointer::from_bytes(reader.take(Pointer::LEN)?)?;
        let records = reader.long()?;
        let level = reader.byte()?;
        let rest = reader.take(reader.remaining())?;
        let valid = level <= LEVEL_MAX && rest.iter().all(|&byte| byte == 0);
        valid.then_some(Some(Self {
            node,
            level,
            records,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_that_nobody_writes_are_refused() {
        let root = Root {
            node: Pointer {
                block: 9,
                blocks: 4,
                generation: 1,
            },
            level: 0,
            records: 1,
        };
        let good = Root::to_bytes(Some(root));
        for (at, value) in [(6, 0), (6, 17), (7, 1), (24, 16), (25, 1), (31, 9)] {
            let mut bad = good;
            bad[at] = value;
            assert_eq!(Root::from_bytes(&bad), None, "byte {at}");
        }
    }
}
