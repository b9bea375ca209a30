use crate::FileSystem;
use crate::file_system::Core;
use crate::inode::Numbered as _;
use crate::node::Node;
use crate::types::{Access, Attr, Caller, Errno, FileType, Result};

impl FileSystem {
    /// All attributes, as one moment saw them. The space of a file of which the store cannot tell it now is taken from its
    /// size: [`FileSystem::attributes`] tells the error.
    #[must_use]
    pub fn getattr(&self, node: &Node) -> Attr {
        let _ = self.core.refresh(node.inode());
        let _ = self.core.weigh(node.inode());
        node.inode().told()
    }

    /// As [`FileSystem::getattr`], as a system call answers it.
    ///
    /// # Errors
    /// `EIO` when the file system was revoked; what the store answers where it has to be asked how much space a file
    /// takes, or whether others changed the inode: `ESTALE` if they removed it.
    pub fn attributes(&self, node: &Node) -> Result<Attr> {
        self.core.alive()?;
        self.core.refresh(node.inode())?;
        self.core.weigh(node.inode())?;
        Ok(node.inode().told())
    }

    /// May `who` read, write, execute (or search)? Nothing asked for: does it exist?
    ///
    /// # Errors
    /// `EACCES`; `EROFS` for writing on a read-only file system.
    pub fn access(&self, who: &Caller, node: &Node, want: Access) -> Result<()> {
        let core: &Core = &self.core;
        if want.contains(Access::EXEC) && node.kind() == FileType::Regular && core.policy.noexec() {
            return Err(Errno::EACCES);
        }
        core.refresh(node.inode())?;
        core.may(who, node.inode(), want)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `EINVAL` for anything else.
    pub fn readlink(&self, node: &Node) -> Result<Box<[u8]>> {
        self.core.alive()?;
        self.core.refresh(node.inode())?;
        let target = node.inode().target().ok_or(Errno::EINVAL)?;
        self.core.accessed(node.inode());
        Ok(target.into())
    }
}
