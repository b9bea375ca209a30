use crate::FileSystem;
use crate::file_system::Core;
use crate::node::Node;
use crate::types::{Access, Attr, Caller, Errno, FileType, Result};

impl FileSystem {
    /// All attributes, as one moment saw them.
    #[must_use]
    pub fn getattr(&self, node: &Node) -> Attr {
        node.0.attr(&node.0.meta())
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
        core.may(who, &node.0, want)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `EINVAL` for anything else.
    pub fn readlink(&self, node: &Node) -> Result<Box<[u8]>> {
        let target = node.0.target().ok_or(Errno::EINVAL)?;
        self.core.accessed(&node.0);
        Ok(target.into())
    }
}
