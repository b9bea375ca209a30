//! The flag bits of an inode.

/// A mark: a newer access time has not reached the store.
pub(super) const LAZY_TIME: u8 = 1;

/// A mark: all data of the file is in memory.
pub(super) const COMPLETE: u8 = 1 << 1;

/// A mark: for each page it is known in memory whether it has data.
pub(super) const MAPPED: u8 = 1 << 4;

/// A mark: read ahead, and not used yet.
pub(super) const READAHEAD: u8 = 1 << 5;

/// A mark: in a file that is not mapped, each page before the end has data.
pub(super) const FULL: u8 = 1 << 6;

/// A mark: quotas count the inode.
pub(super) const COUNTED: u8 = 1 << 2;

/// A mark: the store has not been given the inode yet.
pub(super) const NEW: u8 = 1 << 3;

/// A mark: the times may have been read since the last change.
pub(super) const QUERIED: u8 = 1 << 7;

/// What is known of a file's content when its inode is published. The times of a loaded inode may
/// have been read before, so `QUERIED` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ContentState {
    /// All of it is in memory.
    All = COMPLETE | MAPPED,
    /// It is in the store; each page before the end has data.
    Full = FULL | QUERIED,
    /// It is in the store.
    Nothing = QUERIED,
}
