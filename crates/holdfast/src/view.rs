//! What every handle carries: which file system, and on whose behalf.

use holdfast_core::FileSystem as Core;
use holdfast_core::types::{Caller, Errno, Result};

/// A core file system as one caller sees it. Handles share it by reference count.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) core: Core,
    pub(crate) who: Caller,
}

impl View {
    /// Refuses to join handles of two file systems in one operation.
    ///
    /// # Errors
    /// `EXDEV`, as the kernel answers across mounts.
    pub(crate) fn same_file_system(&self, other: &Self) -> Result<()> {
        // A file system has one root in memory, so its root is its identity.
        if self.core.root() == other.core.root() {
            Ok(())
        } else {
            Err(Errno::EXDEV)
        }
    }
}
