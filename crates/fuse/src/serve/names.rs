//! Names: looking up, making, linking, renaming, removing.

use super::{CoreOperations, caller::caller};
use crate::Context;
use holdfast_core::types::{Attr, Errno, FileType, Ino, RenameFlags, Result};

impl CoreOperations {
    pub(super) fn find(&self, cx: &Context<'_>, parent: Ino, name: &[u8]) -> Result<Attr> {
        let dir = self.fs.node(parent)?;
        if name == b"." {
            // A file handle is opened whose inode the kernel has forgotten: any inode is asked for so, not
            // only directories. What has no name any more is gone, though the kernel's word for that may be under way.
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
    ) -> Result<Attr> {
        let kind = FileType::from_mode(mode).ok_or(Errno::EINVAL)?;
        let perm = (mode & 0o7777) as u16;
        let dir = self.fs.node(parent)?;
        match self.fs.mknod(&caller(cx), &dir, name, kind, perm, rdev) {
            // A kernel that opens files by itself makes those that it believes absent, and opens those that are there.
            // This one was made past it meanwhile: it looks again, and then knows which it is.
            Err(Errno::EEXIST) if self.no_open && kind == FileType::Regular => Err(Errno::ESTALE),
            made => Ok(self.give(&made?)),
        }
    }

    pub(super) fn make_directory(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        name: &[u8],
        mode: u32,
    ) -> Result<Attr> {
        let dir = self.fs.node(parent)?;
        let perm = (mode & 0o7777) as u16;
        Ok(self.give(&self.fs.mkdir(&caller(cx), &dir, name, perm)?))
    }

    pub(super) fn make_symlink(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        name: &[u8],
        target: &[u8],
    ) -> Result<Attr> {
        let dir = self.fs.node(parent)?;
        Ok(self.give(&self.fs.symlink(&caller(cx), &dir, name, target)?))
    }

    pub(super) fn make_link(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        parent: Ino,
        name: &[u8],
    ) -> Result<Attr> {
        let node = self.fs.node(ino)?;
        let dir = self.fs.node(parent)?;
        self.fs.link(&caller(cx), &node, &dir, name)?;
        Ok(self.give(&node))
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
        self.fs
            .rename(&caller(cx), &dir, name, &new_dir, new_name, flags)
    }

    pub(super) fn target(&self, ino: Ino, out: &mut [u8]) -> Result<usize> {
        let target = self.fs.readlink(&self.fs.node(ino)?)?;
        let out = out.get_mut(..target.len()).ok_or(Errno::ENAMETOOLONG)?;
        out.copy_from_slice(&target);
        Ok(target.len())
    }
}
