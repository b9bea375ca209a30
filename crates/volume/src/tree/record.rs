//! The contents of a tree: keys, values, and their coding.

use crate::varint::Reader;
use std::fmt::Debug;

/// The kind of a node's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Attributes by inode number.
    Inodes = 1,
    /// Names by directory and cookie.
    Entries = 2,
    /// Cookies by directory and hash of the name.
    Hashes = 3,
    /// Content, extents and extended attributes by inode number.
    Data = 4,
}

/// A key: ordered, and of one length in interior nodes.
pub trait Key: Copy + Ord + Debug + Send + Sync + 'static {
    /// Bytes in an interior node.
    const LEN: usize;

    /// Appends exactly [`Self::LEN`] bytes.
    fn write(self, out: &mut Vec<u8>);

    /// Reads the bytes of [`Self::write`]; `None` if no writer produces them.
    fn read(bytes: &mut Reader<'_>) -> Option<Self>;
}

/// A kind of record.
///
/// Records lie in blocks, each coded as the difference from the one before it in its block. The
/// first of a block is coded as the difference from `Context::default()`, so that blocks are
/// independent.
pub trait Record: Sized + Send + Sync + 'static {
    /// The tree of these records.
    const KIND: Kind;
    /// Records of a full block; at most 255.
    const PER_BLOCK: u8;
    /// The most bytes of a record.
    const LEN_MAX: usize;
    /// The key that orders the records.
    type Key: Key;
    /// The value of a key; may borrow from the node.
    type Value<'a>: Clone + Debug;
    /// The fields that the next record is coded against: equal contexts and equal records give
    /// equal bytes.
    type Context: Copy + Default + Eq + Debug + Send + Sync;

    /// Can this record be stored?
    fn is_storable(key: Self::Key, value: &Self::Value<'_>) -> bool;

    /// Appends a storable record.
    fn encode(
        context: &mut Self::Context,
        key: Self::Key,
        value: &Self::Value<'_>,
        out: &mut Vec<u8>,
    );

    /// Reads a record. `None`: no writer produces it, so the node is damaged.
    fn decode<'a>(
        context: &mut Self::Context,
        input: &mut Reader<'a>,
    ) -> Option<(Self::Key, Self::Value<'a>)>;

    /// The key of the first record of a block.
    fn first_key(input: &mut Reader<'_>) -> Option<Self::Key> {
        Self::decode(&mut Self::Context::default(), input).map(|(key, _)| key)
    }
}
