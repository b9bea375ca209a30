//! Extended attributes, and ACLs as extended attributes.
//!
//! Namespaces are Linux's. `user.` follows the file's permissions, on regular files and directories
//! only. `trusted.` needs `CAP_SYS_ADMIN`; `security.` can be read by every caller; `system.`
//! contains only the two ACLs.

use holdfast_sync::epoch;

use crate::FileSystem;
use crate::acl::{self, ACL_ACCESS, ACL_DEFAULT, Acl};
use crate::core::Core;
use crate::events::notify_event;
use crate::inode::{ExtraAttrs, Meta, MetaWrite, Numbered as _, View, value};
use crate::node::Node;
use crate::notify::notify_inode;
use crate::permission::{in_group_or_capable, may_access, owns};
use crate::shared::refresh_inode;
use crate::store::{Change, Intent, Operation};
use crate::through::Changed;
use crate::transaction::{Begun, begin, release_kept};
use crate::types::{Access, Caller, Caps, Errno, FileType, Result, S_ISGID, S_ISVTX, XattrSet};
use crate::watch::EventMask;

/// File capabilities.
pub(crate) const CAPABILITY: &[u8] = b"security.capability";

const NAME_MAX: usize = 255;
const VALUE_MAX: usize = 65536;
/// Bytes of all values of one inode, at most.
const TOTAL_MAX: usize = 1 << 20;

impl FileSystem {
    /// The value of an extended attribute.
    ///
    /// # Errors
    /// `ENODATA` if there is none; `EACCES` for `user.` without permission to read;
    /// `EOPNOTSUPP` for an unknown namespace; `ERANGE` for a name of no or over 255 bytes.
    pub fn getxattr(&self, who: &Caller, node: &Node, name: &[u8]) -> Result<Box<[u8]>> {
        self.core.alive()?;
        check_name(name)?;
        refresh_inode(&self.core, node.inode())?;
        may_xattr(&self.core, who, node, name, Access::READ)?;
        let guard = epoch::pin();
        let view = node.inode().view(&guard);
        if let Some(acl) = acl_of(node, &view, name)? {
            return acl.map(acl::to_xattr).ok_or(Errno::ENODATA);
        }
        let extra_attrs = view.extra_attrs.ok_or(Errno::ENODATA)?;
        let value = extra_attrs.xattrs.get(name).ok_or(Errno::ENODATA)?;
        Ok(Box::from(&**value))
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` as `how` demands. `EPERM`, `EACCES`, `EROFS`. `E2BIG` for a value over
    /// 64 KiB. `ENOSPC` when an inode's values exceed 1 MiB. `EINVAL` for a malformed ACL.
    /// `EOPNOTSUPP`, `ERANGE`.
    pub fn setxattr(
        &self,
        who: &Caller,
        node: &Node,
        name: &[u8],
        value: &[u8],
        how: XattrSet,
    ) -> Result<()> {
        check_name(name)?;
        if value.len() > VALUE_MAX {
            return Err(Errno::E2BIG);
        }
        let core = &self.core;
        core.writable()?;
        if name == ACL_ACCESS || name == ACL_DEFAULT {
            set_acl(core, who, node, name, value)?;
        } else {
            may_xattr(core, who, node, name, Access::WRITE)?;
            change_xattr(core, who, node, name, (Some(value), how))?;
        }
        notify_event(core, node.inode(), EventMask::ATTRIB);
        notify_inode(core, who, node.ino(), false);
        Ok(())
    }

    /// The names of all extended attributes that are visible to the caller, each ended by a NUL.
    /// Those of `trusted.` need `CAP_SYS_ADMIN`, even with `Caller::checked`: a kernel in front
    /// does not filter a list of names.
    ///
    /// # Errors
    /// `EIO` when the file system was revoked.
    pub fn listxattr(&self, who: &Caller, node: &Node) -> Result<Vec<u8>> {
        self.core.alive()?;
        refresh_inode(&self.core, node.inode())?;
        let guard = epoch::pin();
        let mut names = Vec::new();
        let mut push = |name: &[u8]| {
            names.extend_from_slice(name);
            names.push(0);
        };
        let Some(extra_attrs) = node.inode().view(&guard).extra_attrs else {
            return Ok(names);
        };
        if extra_attrs.acl.is_some() {
            push(ACL_ACCESS);
        }
        if extra_attrs.default_acl.is_some() {
            push(ACL_DEFAULT);
        }
        for name in extra_attrs.xattrs.keys() {
            if !name.starts_with(b"trusted.") || who.caps.contains(Caps::SYS_ADMIN) {
                push(name);
            }
        }
        Ok(names)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `ENODATA` if there is none, but not for an absent ACL; otherwise as
    /// [`FileSystem::setxattr`].
    pub fn removexattr(&self, who: &Caller, node: &Node, name: &[u8]) -> Result<()> {
        check_name(name)?;
        let core = &self.core;
        core.writable()?;
        if name == ACL_ACCESS || name == ACL_DEFAULT {
            match may_set_acl(who, node, name) {
                // An inode that cannot have a default ACL has none to be removed.
                Err(Errno::EACCES) => return Ok(()),
                checked => checked?,
            }
            keep_acl(core, who, node, name, None)?;
        } else {
            may_xattr(core, who, node, name, Access::WRITE)?;
            change_xattr(core, who, node, name, (None, XattrSet::Replace))?;
        }
        notify_event(core, node.inode(), EventMask::ATTRIB);
        notify_inode(core, who, node.ino(), false);
        Ok(())
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(Errno::ERANGE);
    }
    Ok(())
}

/// A name's namespace and the rest; a name without a dot has no namespace.
fn split_name(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().position(|&byte| byte == b'.') {
        Some(dot) => (&name[..dot], &name[dot + 1..]),
        None => (&[], name),
    }
}

/// Is there an attribute of this name, ACLs aside?
pub(crate) fn holds(extra_attrs: Option<&ExtraAttrs>, name: &[u8]) -> bool {
    extra_attrs.is_some_and(|extra_attrs| extra_attrs.xattrs.contains_key(name))
}

/// The ACL of this attribute; `None` if the name is not an ACL's.
fn acl_of<'g>(node: &Node, view: &View<'g>, name: &[u8]) -> Result<Option<Option<&'g Acl>>> {
    match name {
        _ if node.kind() == FileType::Symlink && (name == ACL_ACCESS || name == ACL_DEFAULT) => {
            Err(Errno::EOPNOTSUPP)
        }
        ACL_ACCESS => Ok(Some(view.acl())),
        ACL_DEFAULT => Ok(Some(view.default_acl())),
        _ => Ok(None),
    }
}

/// The check of Linux's `xattr_permission`, for the namespaces that exist here.
fn may_xattr(core: &Core, who: &Caller, node: &Node, name: &[u8], want: Access) -> Result<()> {
    if want == Access::WRITE {
        node.inode().allow_change()?;
    }
    let missing = if want == Access::WRITE {
        Errno::EPERM
    } else {
        Errno::ENODATA
    };
    let (space, rest) = split_name(name);
    match space {
        b"system" => {}
        b"security" => {
            let needed = if name == CAPABILITY {
                Caps::SETFCAP
            } else {
                Caps::SYS_ADMIN
            };
            if want == Access::WRITE && !who.has(needed) {
                return Err(Errno::EPERM);
            }
        }
        b"trusted" => {
            if !who.has(Caps::SYS_ADMIN) {
                return Err(missing);
            }
        }
        b"user" => {
            if !matches!(node.kind(), FileType::Regular | FileType::Directory) {
                return Err(missing);
            }
            let foreign_sticky = {
                let meta = node.inode().meta();
                node.kind().is_dir() && meta.perm & S_ISVTX != 0 && !owns(who, &meta)
            };
            if foreign_sticky && want == Access::WRITE {
                return Err(Errno::EPERM);
            }
            may_access(core, who, node.inode(), want)?;
        }
        _ => may_access(core, who, node.inode(), want)?,
    }
    match space {
        b"security" | b"trusted" | b"user" if rest.is_empty() => Err(Errno::EINVAL),
        b"security" | b"trusted" | b"user" => Ok(()),
        _ if name == ACL_ACCESS || name == ACL_DEFAULT => Ok(()),
        _ => Err(Errno::EOPNOTSUPP),
    }
}

/// Sets or (`None`) removes an extended attribute that is no ACL.
fn change_xattr(
    core: &Core,
    who: &Caller,
    node: &Node,
    name: &[u8],
    (new, how): (Option<&[u8]>, XattrSet),
) -> Result<()> {
    let check = |extra_attrs: Option<&ExtraAttrs>| {
        let all = extra_attrs.into_iter().flat_map(|it| &it.xattrs);
        let others = all.filter(|(other, _)| ***other != *name);
        let total: usize = others.map(|(name, value)| name.len() + value.len()).sum();
        match (how, holds(extra_attrs, name)) {
            (XattrSet::Create, true) => Err(Errno::EEXIST),
            (XattrSet::Replace, false) => Err(Errno::ENODATA),
            _ if new.is_some_and(|new| total + name.len() + new.len() > TOTAL_MAX) => {
                Err(Errno::ENOSPC)
            }
            _ => Ok(()),
        }
    };
    let ino = node.ino();
    let operation = match new {
        None => Operation::RemoveXattr {
            ino,
            name,
            perm: None,
        },
        Some(value) => Operation::SetXattr {
            ino,
            name,
            value,
            how,
            perm: None,
            kept: true,
        },
    };
    change_value(core, who, node, name, &operation, check, |meta| {
        let xattrs = &mut meta.extra_attrs().xattrs;
        match new {
            Some(new) => xattrs.insert(name.into(), new.into()),
            None => xattrs.remove(name),
        };
    })
}

fn may_set_acl(who: &Caller, node: &Node, name: &[u8]) -> Result<()> {
    if node.kind() == FileType::Symlink {
        return Err(Errno::EOPNOTSUPP);
    }
    node.inode().allow_change()?;
    if name == ACL_DEFAULT && !node.kind().is_dir() {
        return Err(Errno::EACCES);
    }
    if !owns(who, &node.inode().meta()) {
        return Err(Errno::EPERM);
    }
    Ok(())
}

fn set_acl(core: &Core, who: &Caller, node: &Node, name: &[u8], value: &[u8]) -> Result<()> {
    if !value.is_empty() {
        Acl::check_format(value)?;
    }
    let parse = || {
        if value.is_empty() {
            Ok(None)
        } else {
            Acl::parse(value)
        }
    };
    match may_set_acl(who, node, name) {
        // Removing a default ACL from an inode that cannot have one is no change.
        Err(Errno::EACCES) if parse() == Ok(None) => return Ok(()),
        checked => checked?,
    }
    let acl = parse()?;
    keep_acl(core, who, node, name, acl)
}

/// Sets or removes an ACL; an access ACL also sets the mode.
fn keep_acl(core: &Core, who: &Caller, node: &Node, name: &[u8], acl: Option<Acl>) -> Result<()> {
    let ino = node.ino();
    let value = acl.as_ref().map(acl::to_xattr);
    let mode = acl.as_ref().filter(|_| name == ACL_ACCESS);
    let mode = mode.map(|acl| (acl::mode_of(acl), acl::equivalent_mode(acl).is_some()));
    let perm_of = |meta: &Meta| {
        let perm = mode.map_or(meta.perm, |(mode, _)| meta.perm & 0o7000 | mode);
        match in_group_or_capable(who, meta.gid) {
            true => perm,
            false => perm & !S_ISGID,
        }
    };
    // An access ACL that the mode expresses is not kept.
    let kept = mode.is_none_or(|(_, equivalent)| !equivalent);
    let operation = match &value {
        None => Operation::RemoveXattr {
            ino,
            name,
            perm: (name == ACL_ACCESS).then(|| perm_of(&node.inode().meta())),
        },
        Some(value) => Operation::SetXattr {
            ino,
            name,
            value,
            how: XattrSet::Any,
            perm: mode.map(|_| perm_of(&node.inode().meta())),
            kept,
        },
    };
    let change = |meta: &mut MetaWrite<'_>| {
        if name == ACL_ACCESS {
            meta.perm = perm_of(meta);
        }
        let acl = acl.filter(|_| kept);
        if acl.is_none() && meta.with_extra_attrs(|extra_attrs| extra_attrs.is_none()) {
            return;
        }
        let extra_attrs = meta.extra_attrs();
        match name {
            ACL_ACCESS => extra_attrs.acl = acl,
            _ => extra_attrs.default_acl = acl,
        }
    };
    match change_value(core, who, node, name, &operation, |_| Ok(()), change) {
        // There was none to remove.
        Err(Errno::ENODATA) => Ok(()),
        changed => changed,
    }
}

/// Changes one value of an inode, an ACL included, and submits it with the attributes.
fn change_value(
    core: &Core,
    who: &Caller,
    node: &Node,
    name: &[u8],
    operation: &Operation<'_>,
    check: impl FnOnce(Option<&ExtraAttrs>) -> Result<()>,
    change: impl FnOnce(&mut MetaWrite<'_>),
) -> Result<()> {
    let (intent, len) = match operation {
        Operation::SetXattr { value, .. } => (Intent::default(), value.len()),
        _ => (Intent::giving_back(), 0),
    };
    let intent = intent.records(1).value(name.len() + len);
    let transaction = match begin(core, || intent, |through| through.perform(who, operation))? {
        Begun::Done(performed) => return performed.update(node, Changed::Rest),
        Begun::Decide(transaction) => transaction,
    };
    let inode = node.inode();
    let transaction = transaction.lock([inode]);
    let mut meta = inode.write();
    meta.with_extra_attrs(check)?;
    let before = meta.with_extra_attrs(|extra_attrs| value(extra_attrs, name));
    change(&mut meta);
    meta.ctime = inode.time_of_change();
    let after = meta.with_extra_attrs(|extra_attrs| value(extra_attrs, name));
    drop(meta);
    if let Some(before) = before {
        release_kept(core, name.len() + before.len());
    }
    let batch = [
        Change::Xattr {
            ino: inode.ino(),
            name,
            value: after.as_deref(),
        },
        Change::Attributes {
            inode: inode.record(&inode.meta()),
        },
    ];
    transaction.commit(&batch)
}
