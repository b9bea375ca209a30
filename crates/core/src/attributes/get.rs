use crate::FileSystem;
use crate::attributes::atime::note_access;
use crate::core::Core;
use crate::inode::Numbered as _;
use crate::io::unmapped::load_block_count;
use crate::node::Node;
use crate::permission::may_access;
use crate::shared::refresh_inode;
use crate::types::{Access, Attr, Caller, Errno, FileType, Result};

impl FileSystem {
    /// All attributes, as of one moment. If the store cannot report a file's space, it is computed
    /// from the size; [`FileSystem::attributes`] returns the error.
    #[must_use]
    pub fn getattr(&self, node: &Node) -> Attr {
        let _ = refresh_inode(&self.core, node.inode());
        let _ = load_block_count(&self.core, node.inode());
        node.inode().stat()
    }

    /// As [`FileSystem::getattr`], with the errors of stat(2).
    ///
    /// # Errors
    /// `EIO` when the file system was revoked. The store's errors if it has to be asked for a
    /// file's space, or for changes made by others: `ESTALE` if they removed the inode.
    pub fn attributes(&self, node: &Node) -> Result<Attr> {
        self.core.alive()?;
        refresh_inode(&self.core, node.inode())?;
        load_block_count(&self.core, node.inode())?;
        Ok(node.inode().stat())
    }

    /// access(2): may the caller read, write, execute (or search)? An empty `want` checks
    /// existence.
    ///
    /// # Errors
    /// `EACCES`; `EROFS` for writing on a read-only file system.
    pub fn access(&self, who: &Caller, node: &Node, want: Access) -> Result<()> {
        let core: &Core = &self.core;
        if want.contains(Access::EXEC) && node.kind() == FileType::Regular && core.policy.noexec() {
            return Err(Errno::EACCES);
        }
        refresh_inode(core, node.inode())?;
        may_access(core, who, node.inode(), want)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `EINVAL` for anything else.
    pub fn readlink(&self, node: &Node) -> Result<Box<[u8]>> {
        self.core.alive()?;
        refresh_inode(&self.core, node.inode())?;
        let target = node.inode().target().ok_or(Errno::EINVAL)?;
        note_access(&self.core, node.inode());
        Ok(target.into())
    }
}
