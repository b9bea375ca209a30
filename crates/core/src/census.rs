//! All inodes in memory, for callers: walks, and a census by state and type.

use crate::FileSystem;
use crate::inodes::walk::{scan_inodes, walk_inodes};
use crate::inodes::{InodeWalk, Visit};
use crate::node::Node;
use crate::types::{FileType, Result};

/// How many inodes are in memory, by state and by type. They are counted one after the other, not
/// atomically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InodeCensus {
    /// Referenced: by an open file, a front end's kernel, an operation.
    pub used: u64,
    /// Not referenced, but linked: cached.
    pub unused: u64,
    /// Referenced, and without a name: freed with the last reference.
    pub orphans: u64,
    /// Being evicted or freed.
    pub dying: u64,
    /// Regular files.
    pub regular: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Fifos, sockets and devices.
    pub special: u64,
}

impl FileSystem {
    /// Counts the inodes in memory.
    #[must_use]
    pub fn inode_census(&self) -> InodeCensus {
        let mut census = InodeCensus::default();
        // The unchecked iterator: inodes that are being freed are counted, and cannot be
        // referenced.
        scan_inodes(&self.core, (0, u64::MAX), &mut |inode| {
            let state = if !inode.is_live() {
                &mut census.dying
            } else if !inode.may_be_used() {
                &mut census.unused
            } else if inode.nlink() == 0 {
                &mut census.orphans
            } else {
                &mut census.used
            };
            *state += 1;
            let kind = match inode.kind() {
                FileType::Regular => &mut census.regular,
                FileType::Directory => &mut census.directories,
                FileType::Symlink => &mut census.symlinks,
                _ => &mut census.special,
            };
            *kind += 1;
        });
        census
    }
}

impl FileSystem {
    /// Walks for `parts` threads that together visit what one walk would.
    #[must_use]
    pub fn inode_walks(&self, parts: usize) -> Vec<InodeWalk> {
        let ranges = self.core.index.ranges(parts);
        ranges
            .into_iter()
            .map(|(from, end)| InodeWalk::range(from, end))
            .collect()
    }

    /// Calls `visit` for every live inode in memory, from the position of `walk` on, in the order
    /// of numbers. It stops when the visitor asks for it or fails, or at the end; a later call
    /// continues there and visits no inode again.
    ///
    /// No lock is held while the visitor runs. An inode that is in memory from the first call to
    /// the last is visited exactly once, any other at most once.
    ///
    /// # Errors
    /// The visitor's.
    pub fn walk_inodes(
        &self,
        walk: &mut InodeWalk,
        mut visit: impl FnMut(&Node) -> Result<Visit>,
    ) -> Result<()> {
        walk_inodes(&self.core, walk, &mut visit)
    }
}
