//! Operations on names, by path.

use crate::FileSystem;
use crate::namespace::{End, check_flags, check_target};
use crate::node::Node;
use crate::types::{Caller, Errno, FileType, RenameFlags, Result, is_special};

impl FileSystem {
    /// [`FileSystem::mkdir`] by path.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`].
    pub fn mkdir_at(&self, who: &Caller, base: &Node, path: &[u8], perm: u16) -> Result<Node> {
        let at = self.resolve_parent(who, base, path)?;
        self.mkdir(who, &at.dir, &at.name, perm)
    }

    /// [`FileSystem::mknod`] by path.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`].
    pub fn mknod_at(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        kind: FileType,
        perm: u16,
        rdev: u64,
    ) -> Result<Node> {
        let at = self.resolve_new(who, base, path)?;
        self.mknod(who, &at.dir, &at.name, kind, perm, rdev)
    }

    /// [`FileSystem::symlink`] by path.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`].
    pub fn symlink_at(
        &self,
        who: &Caller,
        base: &Node,
        path: &[u8],
        target: &[u8],
    ) -> Result<Node> {
        // Checked before the path is resolved, as in Linux.
        check_target(target)?;
        let at = self.resolve_new(who, base, path)?;
        self.symlink(who, &at.dir, &at.name, target)
    }

    /// [`FileSystem::link`] by path: `path` is the new name.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`].
    pub fn link_at(&self, who: &Caller, node: &Node, base: &Node, path: &[u8]) -> Result<()> {
        let at = self.resolve_new(who, base, path)?;
        self.link(who, node, &at.dir, &at.name)
    }

    /// [`FileSystem::unlink`] by path.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`].
    pub fn unlink_at(&self, who: &Caller, base: &Node, path: &[u8]) -> Result<()> {
        let at = self.resolve_parent(who, base, path)?;
        if at.trailing_slash && !is_special(&at.name) {
            let node = self.lookup(who, &at.dir, &at.name)?;
            return Err(match node.kind().is_dir() {
                true => Errno::EISDIR,
                false => Errno::ENOTDIR,
            });
        }
        self.unlink(who, &at.dir, &at.name)
    }

    /// [`FileSystem::rmdir`] by path.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`].
    pub fn rmdir_at(&self, who: &Caller, base: &Node, path: &[u8]) -> Result<()> {
        let at = self.resolve_parent(who, base, path)?;
        self.rmdir(who, &at.dir, &at.name)
    }

    /// [`FileSystem::rename`] by paths.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`]. `ENOTDIR` for trailing slashes
    /// after a name that is not, or does not become, a directory's.
    pub fn rename_at(
        &self,
        who: &Caller,
        from_base: &Node,
        from_path: &[u8],
        to_base: &Node,
        to_path: &[u8],
        flags: RenameFlags,
    ) -> Result<()> {
        check_flags(flags)?;
        let from = self.resolve_parent(who, from_base, from_path)?;
        let to = self.resolve_parent(who, to_base, to_path)?;
        let from = End {
            dir: &from.dir,
            name: &from.name,
            slash: from.trailing_slash,
        };
        let to = End {
            dir: &to.dir,
            name: &to.name,
            slash: to.trailing_slash,
        };
        self.rename_names(who, from, to, flags)
    }
}
