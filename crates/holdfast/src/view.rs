//! A file system and a caller, which every handle has.

use holdfast_core::FileSystem as Core;
use holdfast_core::types::{Caller, Errno, Result};

/// A core file system as one caller sees it. Handles share it by reference count.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) core: Core,
    pub(crate) who: Caller,
}

impl View {
    /// Refuses an operation on handles of two file systems.
    ///
    /// # Errors
    /// `EXDEV`, as the kernel answers across mounts.
    pub(crate) fn same_file_system(&self, other: &Self) -> Result<()> {
        // A file system has one root inode in memory, which identifies it.
        if self.core.root() == other.core.root() {
            Ok(())
        } else {
            Err(Errno::EXDEV)
        }
    }
}
