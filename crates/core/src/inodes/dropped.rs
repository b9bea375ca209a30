//! What an eviction reports.

/// What [`FileSystem::drop_caches`](crate::FileSystem::drop_caches) evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Inodes.
    pub inodes: u64,
    /// Names in the directories among them.
    pub names: u64,
}
