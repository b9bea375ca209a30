//! The operations on names, by path.

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
        self.at_parent(who, base, path, |at| {
            self.core.make_directory(who, at.dir, at.name, perm)
        })
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
        self.at_parent(who, base, path, |at| {
            at.refuse_slash(&self.core, who)?;
            self.core.make_node(who, at.dir, at.name, kind, perm, rdev)
        })
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
        // Before anything of the path is looked at.
        check_target(target)?;
        self.at_parent(who, base, path, |at| {
            at.refuse_slash(&self.core, who)?;
            self.core.make_symlink(who, at.dir, at.name, target)
        })
    }

    /// [`FileSystem::link`] by path: `node` gets the name `path`.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`].
    pub fn link_at(&self, who: &Caller, node: &Node, base: &Node, path: &[u8]) -> Result<()> {
        self.at_parent(who, base, path, |at| {
            at.refuse_slash(&self.core, who)?;
            self.core.link(who, node, at.dir, at.name)
        })
    }

    /// [`FileSystem::unlink`] by path.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`].
    pub fn unlink_at(&self, who: &Caller, base: &Node, path: &[u8]) -> Result<()> {
        self.at_parent(who, base, path, |at| {
            if at.trailing_slash && !is_special(at.name) {
                let body = self.core.search(who, at.dir)?;
                let node = self.core.named(at.dir, body, at.name)?;
                return Err(if node.kind().is_dir() {
                    Errno::EISDIR
                } else {
                    Errno::ENOTDIR
                });
            }
            self.core.unlink(who, at.dir, at.name)
        })
    }

    /// [`FileSystem::rmdir`] by path.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`].
    pub fn rmdir_at(&self, who: &Caller, base: &Node, path: &[u8]) -> Result<()> {
        self.at_parent(who, base, path, |at| self.core.rmdir(who, at.dir, at.name))
    }

    /// [`FileSystem::rename`] by paths.
    ///
    /// # Errors
    /// Its errors, and those of [`FileSystem::resolve_parent`]; `ENOTDIR` if slashes follow the
    /// name of something that is not, or does not become, a directory.
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
        let from = self.parent_of(who, from_base, from_path)?;
        let to = self.parent_of(who, to_base, to_path)?;
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
        self.rename_ends(who, from, to, flags)
    }
}
