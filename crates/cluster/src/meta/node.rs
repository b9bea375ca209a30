//! Inodes, names and content as the database keeps them.

use holdfast_core::store::{EntryRecord, InodeRecord};

/// An inode, with the data that comes along in the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The record. The size of a directory is 32 bytes for each name.
    pub record: InodeRecord,
    /// Changes with each change of the content of a regular file. Never 0.
    pub generation: u64,
    /// The target of a symbolic link.
    pub target: Option<Box<[u8]>>,
    /// The content of a regular file, where it is a body within the inline limit, or empty.
    pub content: Option<Content>,
}

/// A name with its inode. `node` is `None` only for a damaged database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name.
    pub entry: EntryRecord,
    /// The inode.
    pub node: Option<Node>,
}

/// A directory that was read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The directory itself, from before its names were read.
    pub node: Node,
    /// The names, in cookie order.
    pub names: Vec<EntryRecord>,
    /// The inodes of the names, if they were asked for, in any order, each once.
    pub inodes: Vec<Node>,
}

/// Where the bytes of a regular file are. Bytes that are nowhere are a hole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// In the database, from the first byte of the file. `bytes` may end before the file does, and
    /// behind it, with zeros, where space is allocated there.
    Body {
        /// The bytes; holes are zeros.
        bytes: Box<[u8]>,
        /// The pages that take space.
        pages: Pages,
    },
    /// In objects, by offset. Extents do not overlap.
    Extents(Vec<Extent>),
}

impl Content {
    /// No bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::Extents(Vec::new())
    }
}

/// A set of the first 64 pages of 4 KiB of a file: bit `n` is page `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages(pub u64);

/// A range of a file, and where its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first byte in the file; a multiple of 4,096.
    pub offset: u64,
    /// The number of bytes; greater than 0.
    pub len: u64,
    /// The object. 0: the range takes space and reads as zeros.
    pub object: u64,
    /// The first byte in the object.
    pub object_offset: u64,
}
