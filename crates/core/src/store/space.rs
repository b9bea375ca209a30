//! Space of a store and of its files: freed space, totals, and the ranges of a file that have
//! space.

/// Space that a file system frees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// 4 KiB pages of file content.
    pub pages: u64,
    /// Inodes.
    pub inodes: u64,
    /// Bytes of names, values and targets, as [`kept_bytes`](super::kept_bytes) counts them.
    pub bytes: u64,
}

/// Space of a store, in pages of 4 KiB and in inodes. `None`: without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceReport {
    /// Pages in all.
    pub pages: Option<u64>,
    /// Pages in use.
    pub pages_used: u64,
    /// Free pages that no file gets: removals and the store itself need them when all else is full.
    pub pages_reserved: u64,
    /// Inodes in all.
    pub inodes: Option<u64>,
    /// Inodes in use.
    pub inodes_used: u64,
}

/// A range of a file that has space, all of it written or all of it unwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceRun {
    /// The first byte.
    pub start: u64,
    /// The number of bytes; more of the same kind may follow.
    pub len: u64,
    /// Were they written? Unwritten bytes read as zeros.
    pub written: bool,
}
