//! Files of which the size tells nothing, as those of procfs: they are read from the store, past memory.

use super::SharedStore;
use crate::FileSystem;
use crate::file_system::Core;
use crate::node::Node;
use crate::open::OpenFile;
use crate::types::{Errno, FileType, Result};

impl FileSystem {
    /// May a file have content of which its size tells nothing? Then a front end that keeps content asks for each read of it.
    #[must_use]
    pub fn has_no_size(&self, node: &Node) -> bool {
        let shared = self.core.shared();
        shared.is_some_and(|shared| shared.tells_no_size(node))
    }

    /// Is that so of files of any size? Then a front end has to open them to know how they are read.
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

impl Core {
    /// Reads a file of which the size tells nothing; returns how many bytes. `None`: of this one it does.
    ///
    /// # Errors
    /// `EBADF` if it is not open for reading. What the store answers.
    #[inline]
    pub(crate) fn read_without_size(
        &self,
        file: &OpenFile,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>> {
        match self.shared() {
            Some(shared) if shared.tells_no_size(file.node()) => {
                if !file.flags().readable() {
                    return Err(Errno::EBADF);
                }
                self.alive()?;
                let read = shared.read_without_size(file.node().ino(), offset, buf)?;
                Ok(Some(read))
            }
            _ => Ok(None),
        }
    }
}
