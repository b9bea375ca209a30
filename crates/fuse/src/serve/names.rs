//! Names: lookup, creation, rename.

use super::{CoreOperations, caller::caller};
use crate::{Answer, Context};
use holdfast_core::{
    Node,
    types::{Attr, Errno, FileType, Ino, RenameFlags, Result},
};

impl CoreOperations {
    pub(super) fn look_up(&self, cx: &Context<'_>, parent: Ino, name: &[u8]) -> Result<Attr> {
        hop!();
        let dir = self.fs.node(parent)?;
        if name == b"." {
            // open_by_handle_at(2) of an inode that the kernel has forgotten; it need not be a
            // directory. An inode without names is stale, even if the kernel's FORGET is under way.
            if self.fs.getattr(&dir).nlink == 0 {
                return Err(Errno::ESTALE);
            }
            return Ok(self.give(&dir));
        }
        let node = self.fs.lookup(&caller(cx), &dir, name)?;
        if node.kind() != FileType::Directory {
            self.callers.looked_up(cx.pid);
        }
        Ok(self.give(&node))
    }

    pub(super) fn make_node(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        name: &[u8],
        mode: u32,
        rdev: u64,
    ) -> Result<Answer> {
        let kind = FileType::from_mode(mode).ok_or(Errno::EINVAL)?;
        let dir = self.fs.node(parent)?;
        let perm = permissions(mode);
        match self.fs.mknod(&caller(cx), &dir, name, kind, perm, rdev) {
            // With `no_open` the kernel creates a file that it believes absent, and opens one that
            // exists. This file was created past the mount meanwhile. After ESTALE the kernel looks
            // the name up again.
            Err(Errno::EEXIST) if self.config.no_open && kind == FileType::Regular => {
                Err(Errno::ESTALE)
            }
            made => self.made(parent, made),
        }
    }

    pub(super) fn move_name(
        &self,
        cx: &Context<'_>,
        (parent, name): (Ino, &[u8]),
        (new_parent, new_name): (Ino, &[u8]),
        flags: u32,
    ) -> Result<()> {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
        let dir = self.fs.node(parent)?;
        let new_dir = self.fs.node(new_parent)?;
        let who = caller(cx);
        self.fs
            .rename(&who, &dir, name, &new_dir, new_name, flags)?;
        self.names_changed(parent);
        if parent != new_parent {
            self.names_changed(new_parent);
            // A listing of a directory names its parent.
            let moved = [(&new_dir, new_name), (&dir, name)];
            let exchanges = flags.contains(RenameFlags::EXCHANGE);
            for (dir, name) in moved.into_iter().take(1 + usize::from(exchanges)) {
                match self.fs.lookup(&who, dir, name) {
                    Ok(node) if node.kind() == FileType::Directory => {
                        self.names_changed(node.ino())
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// A name was made in `dir`.
    pub(super) fn made(&self, dir: Ino, node: Result<Node>) -> Result<Answer> {
        let node = node?;
        self.names_changed(dir);
        Ok(Answer::Entry(self.give(&node)))
    }
}

/// Permission bits of a mode.
pub(super) fn permissions(mode: u32) -> u16 {
    (mode & 0o7777) as u16
}
