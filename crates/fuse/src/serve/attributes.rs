//! Attributes and extended attributes.

use super::{
    CoreOperations, INFO_XATTR, INODES_XATTR, InfoDetail,
    caller::{caller, caller_without_fsetid, is_admin, keeps_set_gid, keeps_set_ids},
};
use crate::{Context, wire::SetAttrRequest};
use holdfast_core::types::{
    Attr, Caps, Errno, Ino, Result, S_ISGID, S_ISUID, SetAttr, SetTime, XattrSet,
};
use holdfast_core::{Node, OpenFile};
use std::sync::atomic::Ordering;

/// The extended attribute that is a file's ACL.
const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
/// The extended attribute that SELinux keeps a file's label in.
const LABEL: &[u8] = b"security.selinux";

impl CoreOperations {
    /// Clears what the kernel asks to be cleared, and set-group-id without execution where Linux
    /// does: if the caller is not of that group. No request tells of groups, so the process is
    /// asked for, which is seldom.
    pub(super) fn drop_privileges(&self, cx: &Context<'_>, node: &Node) -> Result<()> {
        self.fs.drop_privileges(node)?;
        let attr = self.fs.getattr(node);
        if attr.perm & S_ISGID == 0 || keeps_set_gid(cx.pid, attr.gid) {
            return Ok(());
        }
        let set = SetAttr {
            perm: Some(attr.perm & !S_ISGID),
            ..SetAttr::default()
        };
        self.fs.setattr(&caller(cx), node, &set, None)?;
        Ok(())
    }

    pub(super) fn change_attributes(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &SetAttrRequest,
    ) -> Result<Attr> {
        let who = caller(cx);
        let node = self.fs.node(ino)?;
        let through = request
            .fh
            .filter(|&fh| fh != 0)
            .map(|fh| self.handle(fh))
            .transpose()?;
        let once = self.opened_to_truncate(ino, request)?;
        let file = through.as_ref().map(|handle| &handle.file);
        let file = file.or(once.as_ref());
        // The kernel names an open file for other changes too; only a size goes through it.
        let file = file.filter(|file| request.set.size.is_some() && file.flags().writable());
        if request.kill_suidgid {
            self.drop_privileges(cx, &node)?;
        }
        if request.set == SetAttr::default() {
            return self.change_nothing(cx, &node);
        }
        self.fs.setattr(&who, &node, &request.set, file)
    }

    /// A change of no attribute is how the kernel takes set-id bits (and capabilities) from what is not a
    /// directory: by chown(2) to nobody, and before a change of content. The inode changes with it.
    fn change_nothing(&self, cx: &Context<'_>, node: &Node) -> Result<Attr> {
        if !node.kind().is_dir() {
            self.drop_privileges(cx, node)?;
        }
        let touched = SetAttr {
            ctime: Some(SetTime::Now),
            ..SetAttr::default()
        };
        self.fs.setattr(&caller(cx), node, &touched, None)
    }

    /// For a kernel that does not open: does the size come from ftruncate(2), which names an open file
    /// without a number, or from open(2) with O_TRUNC? Both move the times of a file that has that size
    /// already; truncate(2), which does not, cannot be told from O_TRUNC and is taken for it.
    fn opened_to_truncate(&self, ino: Ino, request: &SetAttrRequest) -> Result<Option<OpenFile>> {
        let by_open = request.fh == Some(0) || request.fh.is_none() && request.set.size == Some(0);
        if !self.no_open || request.set.size.is_none() || !by_open {
            return Ok(None);
        }
        Ok(Some(self.open_for_once(ino)?))
    }

    /// Clears set-id bits before a change of content for which a kernel before 6.2 sends no word of them
    /// (fallocate, copy_file_range), unless the process may keep them. Files with such bits are
    /// few, so it is seldom asked for.
    pub(super) fn content_changes(&self, cx: &Context<'_>, file: &OpenFile) -> Result<()> {
        if self.tells_of_changes.load(Ordering::Relaxed) {
            return Ok(());
        }
        let lends = self.fs.getattr(file.node()).perm & (S_ISUID | S_ISGID) != 0;
        if lends && file.flags().writable() && !keeps_set_ids(cx.pid) {
            self.drop_privileges(cx, file.node())?;
        }
        Ok(())
    }

    pub(super) fn set_xattr(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        flags: u32,
        kill_sgid: bool,
    ) -> Result<()> {
        let how = match flags.cast_signed() {
            0 => XattrSet::Any,
            libc::XATTR_CREATE => XattrSet::Create,
            libc::XATTR_REPLACE => XattrSet::Replace,
            _ => return Err(Errno::EINVAL),
        };
        let who = if kill_sgid {
            caller_without_fsetid(cx)
        } else {
            caller(cx)
        };
        self.fs
            .setxattr(&who, &self.fs.node(ino)?, name, value, how)
    }

    /// # Errors
    /// `ENOSYS` on a mount without extended attributes, which tells the kernel never to ask again.
    pub(super) fn with_xattrs(&self) -> Result<()> {
        if self.xattrs {
            Ok(())
        } else {
            Err(Errno::ENOSYS)
        }
    }

    /// Without its ACL a file loses set-group-id as by chmod(2). A kernel says so of an ACL that is set
    /// (`kill_sgid`), and not of one that is removed: the process is asked for.
    pub(super) fn remove_xattr(&self, cx: &Context<'_>, ino: Ino, name: &[u8]) -> Result<()> {
        let node = self.fs.node(ino)?;
        let attr = self.fs.getattr(&node);
        let lends = name == ACL_ACCESS && attr.perm & S_ISGID != 0;
        let who = if lends && !keeps_set_gid(cx.pid, attr.gid) {
            caller_without_fsetid(cx)
        } else {
            caller(cx)
        };
        self.fs.removexattr(&who, &node, name)
    }

    pub(super) fn read_xattr(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        name: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        if ino == Ino::ROOT
            && let Some(detail) = detail(name)
        {
            let source = self.info.read().clone().ok_or(Errno::ENODATA)?;
            return Ok(copy(source(detail).as_bytes(), out));
        }
        match self.fs.getxattr(&caller(cx), &self.fs.node(ino)?, name) {
            // A program that lists files asks each for its label, but a file system without labels only
            // once (ls, cp, find).
            Err(Errno::ENODATA) if name == LABEL && !self.labels => Err(Errno::EOPNOTSUPP),
            value => Ok(copy(&value?, out)),
        }
    }

    pub(super) fn read_xattr_names(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        out: &mut [u8],
    ) -> Result<usize> {
        let node = self.fs.node(ino)?;
        let mut who = caller(cx);
        let mut names = self.fs.listxattr(&who, &node)?;
        // No kernel looks at a list of names, and no request tells of capabilities: where it
        // matters, which is seldom, the process is asked for.
        let trusted = names
            .split(|&byte| byte == 0)
            .any(|name| name.starts_with(b"trusted."));
        if trusted && !is_admin(cx.pid) {
            who.caps.remove(Caps::SYS_ADMIN);
            names = self.fs.listxattr(&who, &node)?;
        }
        Ok(copy(&names, out))
    }
}

/// What an attribute of the root tells about the mount, if it does.
fn detail(name: &[u8]) -> Option<InfoDetail> {
    let details = [
        (INFO_XATTR, InfoDetail::Brief),
        (INODES_XATTR, InfoDetail::Inodes),
    ];
    let found = details
        .into_iter()
        .find(|(known, _)| name == known.as_bytes());
    found.map(|(_, detail)| detail)
}

/// Copies what fits as a whole; tells the length.
fn copy(value: &[u8], out: &mut [u8]) -> usize {
    if let Some(out) = out.get_mut(..value.len()) {
        out.copy_from_slice(value);
    }
    value.len()
}
