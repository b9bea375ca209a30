//! Space of a store and of its files: what goes back to it, what it has in all, where files have any.

/// What a file system gives back of the space that it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// 4 KiB pages of file content.
    pub pages: u64,
    /// Inodes.
    pub inodes: u64,
    /// What names, values and targets took, as [`kept_bytes`](super::kept_bytes) says.
    pub bytes: u64,
}

/// Space of a store, in pages of 4 KiB and in inodes. `None`: without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceReport {
    /// Pages in all.
    pub pages: Option<u64>,
    /// Pages in use.
    pub pages_used: u64,
    /// Pages of the others that no file gets: what removals and the store itself need when all else is full.
    pub pages_reserved: u64,
    /// Inodes in all.
    pub inodes: Option<u64>,
    /// Inodes in use.
    pub inodes_used: u64,
}

/// Bytes of a file that take space, all written or all not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceRun {
    /// Where they begin.
    pub start: u64,
    /// How many there are; there may be more of the same kind behind them.
    pub len: u64,
    /// Were they written? If not, they read as zeros.
    pub written: bool,
}
