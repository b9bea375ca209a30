//! Files with a meaningless size, like those of procfs: they are read from the store, uncached.

use super::shared_store::SharedStore;
use crate::FileSystem;
use crate::core::Core;
use crate::node::Node;
use crate::open_file::OpenFile;
use crate::types::{Errno, FileType, Result};

impl FileSystem {
    /// May a file have content although its size is meaningless? Then a front end that caches
    /// content forwards each read of it.
    #[must_use]
    pub fn has_no_size(&self, node: &Node) -> bool {
        let shared = self.core.shared();
        shared.is_some_and(|shared| shared.tells_no_size(node))
    }

    /// May files of any size be like that? Then a front end has to open a file to find out.
    #[must_use]
    pub fn has_no_sizes(&self) -> bool {
        self.core
            .shared()
            .is_some_and(|shared| shared.has_no_size(1))
    }
}

impl SharedStore<'_> {
    fn tells_no_size(&self, node: &Node) -> bool {
        node.kind() == FileType::Regular && self.store.has_no_size(node.inode().size())
    }
}

/// Reads a file with a meaningless size; returns the number of bytes. `None`: the size of this
/// file is right.
///
/// # Errors
/// `EBADF` if it is not open for reading. Errors of the store.
#[inline]
pub(crate) fn read_without_size(
    core: &Core,
    file: &OpenFile,
    offset: u64,
    buf: &mut [u8],
) -> Result<Option<usize>> {
    match core.shared() {
        Some(shared) if shared.tells_no_size(file.node()) => {
            if !file.flags().readable() {
                return Err(Errno::EBADF);
            }
            core.alive()?;
            let read = shared.read_without_size(file.node().ino(), offset, buf)?;
            Ok(Some(read))
        }
        _ => Ok(None),
    }
}
