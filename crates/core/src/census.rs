//! All inodes in memory, one after the other, for callers: walks, and a census by state and type.

use crate::FileSystem;
use crate::inodes::{InodeWalk, Visit};
use crate::node::Node;
use crate::types::{FileType, Result};

/// How many inodes are in memory, by state and by type. Counted one after the other, not at one
/// moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InodeCensus {
    /// In use: by an open file, a front end's kernel, an operation.
    pub used: u64,
    /// Not in use, but with a name: kept because it may be wanted again.
    pub unused: u64,
    /// In use, and without a name: gone with the last use.
    pub orphans: u64,
    /// On the way out.
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
        // The unsafe iterator: counting must meet the dying too, which cannot be taken into use.
        self.core.scan_inodes((0, u64::MAX), &mut |inode| {
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
    /// Walks divided among `parts` threads: together they meet what one walk would.
    #[must_use]
    pub fn inode_walks(&self, parts: usize) -> Vec<InodeWalk> {
        let ranges = self.core.index.ranges(parts);
        ranges
            .into_iter()
            .map(|(from, end)| InodeWalk::range(from, end))
            .collect()
    }

    /// Shows every live inode in memory to `visit`, from where `walk` stands, in the order of
    /// numbers, until the visitor wants no more, fails, or the walk is done. It can go on from
    /// there in any case: an inode that was shown is not shown again.
    ///
    /// Nothing is locked while the visitor runs. Inodes that are there from the first call to the
    /// last are visited exactly once; inodes that come or go meanwhile once or not at all.
    ///
    /// # Errors
    /// The visitor's.
    pub fn walk_inodes(
        &self,
        walk: &mut InodeWalk,
        mut visit: impl FnMut(&Node) -> Result<Visit>,
    ) -> Result<()> {
        self.core.walk_inodes(walk, &mut visit)
    }
}
