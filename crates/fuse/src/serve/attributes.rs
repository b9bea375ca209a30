//! Attributes and extended attributes.

use super::{
    CoreOperations, InfoDetail,
    caller::{caller, caller_without_fsetid, has_caps, keeps_set_gid},
};
use crate::{
    Context,
    wire::{SetAttrRequest, SetXattrRequest},
};
use holdfast_core::types::{
    Attr, Caps, Errno, Ino, Result, S_ISGID, S_ISUID, SetAttr, SetTime, XattrSet,
};
use holdfast_core::{Node, OpenFile};

/// The ABI of Linux 6.2. From then on the kernel clears set-id bits before fallocate(2) and
/// copy_file_range(2), as before other changes of content.
const ABI_TELLS_OF_CHANGES: u32 = 38;

/// The extended attribute that is a file's ACL.
const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
/// The extended attribute that SELinux keeps a file's label in.
const LABEL: &[u8] = b"security.selinux";

impl CoreOperations {
    /// Clears the set-id bits as the kernel asks, and set-group-id without group execution as Linux
    /// does: if the caller is not in that group. Requests carry no groups, so the process is read,
    /// which is rare.
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
            .map(|fh| self.handles.get(fh))
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
        let changed = self.fs.setattr(&who, &node, &request.set, file)?;
        if node.kind().is_dir() {
            // Its access time is due: the next listing must be a request, which updates it.
            self.names_changed(ino);
        }
        Ok(changed)
    }

    /// A SETATTR of no attribute is how the kernel clears set-id bits and capabilities of a file:
    /// at chown(2) with no ids, and before a change of content. It changes `ctime`.
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

    /// Without OPEN: does the size come from ftruncate(2), which sends handle 0, or from open(2)
    /// with O_TRUNC? Both change the times even if the size stays. truncate(2) to 0, which does
    /// not, looks like O_TRUNC and is treated as such.
    fn opened_to_truncate(&self, ino: Ino, request: &SetAttrRequest) -> Result<Option<OpenFile>> {
        let by_open = request.fh == Some(0) || request.fh.is_none() && request.set.size == Some(0);
        if !self.config.no_open || request.set.size.is_none() || !by_open {
            return Ok(None);
        }
        Ok(Some(self.open_for_once(ino)?))
    }

    /// Clears set-id bits before fallocate and copy_file_range, which kernels before 6.2 do not
    /// announce, unless the process may keep them. Files with such bits are few, so the process is
    /// rarely read.
    pub(super) fn content_changes(&self, cx: &Context<'_>, file: &OpenFile) -> Result<()> {
        let negotiated = self.negotiated.get();
        if negotiated.is_some_and(|it| it.kernel_minor >= ABI_TELLS_OF_CHANGES) {
            return Ok(());
        }
        let lends = self.fs.getattr(file.node()).perm & (S_ISUID | S_ISGID) != 0;
        if lends && file.flags().writable() && !has_caps(cx.pid, Caps::FSETID) {
            self.drop_privileges(cx, file.node())?;
        }
        Ok(())
    }

    pub(super) fn set_xattr(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &SetXattrRequest<'_>,
    ) -> Result<()> {
        let how = match request.flags.cast_signed() {
            0 => XattrSet::Any,
            libc::XATTR_CREATE => XattrSet::Create,
            libc::XATTR_REPLACE => XattrSet::Replace,
            _ => return Err(Errno::EINVAL),
        };
        let who = if request.kill_sgid {
            caller_without_fsetid(cx)
        } else {
            caller(cx)
        };
        let node = self.fs.node(ino)?;
        self.fs
            .setxattr(&who, &node, request.name, request.value, how)
    }

    /// # Errors
    /// `ENOSYS` on a mount without extended attributes, which tells the kernel never to ask again.
    pub(super) fn with_xattrs(&self) -> Result<()> {
        if self.config.xattrs {
            Ok(())
        } else {
            Err(Errno::ENOSYS)
        }
    }

    /// Removing an ACL clears set-group-id as chmod(2) does. The kernel announces that for an ACL
    /// that is set (`kill_sgid`) but not for one that is removed, so the process is read.
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
            && let Some(detail) = InfoDetail::of(name)
        {
            let source = self.info.read().clone().ok_or(Errno::ENODATA)?;
            return Ok(copy(source(detail).as_bytes(), out));
        }
        match self.fs.getxattr(&caller(cx), &self.fs.node(ino)?, name) {
            // ls, cp and find ask each file for its label until a file system says that it has
            // none.
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
        // The kernel does not filter the list, and requests carry no capabilities. The process is
        // read if the list has `trusted.` names, which is rare.
        let trusted = names
            .split(|&byte| byte == 0)
            .any(|name| name.starts_with(b"trusted."));
        if trusted && !has_caps(cx.pid, Caps::SYS_ADMIN) {
            who.caps.remove(Caps::SYS_ADMIN);
            names = self.fs.listxattr(&who, &node)?;
        }
        Ok(copy(&names, out))
    }
}

/// Copies `value` if it fits; returns its length.
fn copy(value: &[u8], out: &mut [u8]) -> usize {
    if let Some(out) = out.get_mut(..value.len()) {
        out.copy_from_slice(value);
    }
    value.len()
}
