//! Extended attributes, and ACLs in the shape of extended attributes.
//!
//! Namespaces are Linux's: `user.` follows the file's permissions, on regular files and
//! directories only; `trusted.` is for `CAP_SYS_ADMIN`; `security.` is read by everyone;
//! `system.` holds the two ACLs and nothing else.

use holdfast_sync::epoch;

use crate::FileSystem;
use crate::acl::{self, ACL_ACCESS, ACL_DEFAULT, Acl};
use crate::file_system::Core;
use crate::inode::{ExtraAttrs, Inode, Numbered as _, View, kept_acl};
use crate::log_order::Taken;
use crate::node::Node;
use crate::permission::{in_group_or_capable, owns};
use crate::store::{Change, Class, InodeRecord, Intent, Reservation, Space};
use crate::types::{Access, Caller, Caps, Errno, FileType, Result, S_ISGID, S_ISVTX, XattrSet};
use crate::watch::EventMask;

/// File capabilities.
pub(crate) const CAPABILITY: &[u8] = b"security.capability";

const NAME_MAX: usize = 255;
const VALUE_MAX: usize = 65536;
/// All values of one inode together: what a listing can still tell, and memory bears.
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
        self.core.refresh(node.inode())?;
        self.core.may_xattr(who, node, name, Access::READ)?;
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
    /// `EEXIST`, `ENODATA` as `how` demands; `EPERM`, `EACCES`, `EROFS`; `E2BIG` for a value over
    /// 64 KiB; `ENOSPC` when an inode's values exceed 1 MiB; `EINVAL` for a malformed ACL;
    /// `EOPNOTSUPP`; `ERANGE`.
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
            core.set_acl(who, node, name, value)?;
        } else {
            core.may_xattr(who, node, name, Access::WRITE)?;
            match core.through() {
                Some(through) => through.put_xattr(who, node, name, value, how)?,
                None => core.put_xattr(node, name, value, how)?,
            }
        }
        core.notify_event(node.inode(), EventMask::ATTRIB);
        core.notify_inode(who, node.ino(), false);
        Ok(())
    }

    /// The names of all extended attributes that `who` may know of, each ended by a NUL: those
    /// of `trusted.` need `CAP_SYS_ADMIN`, also of a caller that is checked otherwise (no kernel
    /// in front looks at a list of names).
    ///
    /// # Errors
    /// `EIO` when the file system was revoked.
    pub fn listxattr(&self, who: &Caller, node: &Node) -> Result<Vec<u8>> {
        self.core.alive()?;
        self.core.refresh(node.inode())?;
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
    /// `ENODATA` if there is none (an absent ACL is removed without complaint); otherwise as
    /// [`FileSystem::setxattr`].
    pub fn removexattr(&self, who: &Caller, node: &Node, name: &[u8]) -> Result<()> {
        check_name(name)?;
        let core = &self.core;
        core.writable()?;
        if name == ACL_ACCESS || name == ACL_DEFAULT {
            match core.may_set_acl(who, node, name) {
                // What cannot have a default ACL has none: nothing to remove.
                Err(Errno::EACCES) => return Ok(()),
                checked => checked?,
            }
            core.keep_acl(who, node, name, None)?;
        } else {
            core.may_xattr(who, node, name, Access::WRITE)?;
            match core.through() {
                Some(through) => through.remove_xattr(who, node, name)?,
                None => core.take_xattr(node, name)?,
            }
        }
        core.notify_event(node.inode(), EventMask::ATTRIB);
        core.notify_inode(who, node.ino(), false);
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

fn holds(extra_attrs: Option<&ExtraAttrs>, name: &[u8]) -> bool {
    extra_attrs.is_some_and(|extra_attrs| extra_attrs.xattrs.contains_key(name))
}

/// The ACL that this attribute is; the outer `None`: it is no ACL.
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

impl Core {
    /// Linux's `xattr_permission`, with the namespaces that exist here.
    fn may_xattr(&self, who: &Caller, node: &Node, name: &[u8], want: Access) -> Result<()> {
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
                self.may(who, node.inode(), want)?;
            }
            _ => self.may(who, node.inode(), want)?,
        }
        match space {
            b"security" | b"trusted" | b"user" if rest.is_empty() => Err(Errno::EINVAL),
            b"security" | b"trusted" | b"user" => Ok(()),
            _ if name == ACL_ACCESS || name == ACL_DEFAULT => Ok(()),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn put_xattr(&self, node: &Node, name: &[u8], value: &[u8], how: XattrSet) -> Result<()> {
        let intent = Intent::default().records(1);
        let reserved = self.reserve(&intent.value(name.len() + value.len()));
        let mut reservation;
        let turn = self.log_order([node.inode()]);
        let record = {
            let mut meta = node.inode().write();
            let held = meta.with_extra_attrs(|extra_attrs| holds(extra_attrs, name));
            match how {
                XattrSet::Create if held => return Err(Errno::EEXIST),
                XattrSet::Replace if !held => return Err(Errno::ENODATA),
                _ => {}
            }
            let total = meta.with_extra_attrs(|extra_attrs| {
                let all = extra_attrs
                    .into_iter()
                    .flat_map(|extra_attrs| &extra_attrs.xattrs);
                let others = all.filter(|(other, _)| ***other != *name);
                others
                    .map(|(name, value)| name.len() + value.len())
                    .sum::<usize>()
            });
            if total + name.len() + value.len() > TOTAL_MAX {
                return Err(Errno::ENOSPC);
            }
            reservation = reserved?;
            if let Some(gone) = meta.extra_attrs().xattrs.insert(name.into(), value.into()) {
                self.release_kept(name.len() + gone.len());
            }
            meta.ctime = node.inode().time_of_change();
            node.inode().record(&meta)
        };
        self.tell_value(
            turn,
            &mut reservation,
            (node.inode(), record),
            name,
            Some(value),
        )
    }

    fn take_xattr(&self, node: &Node, name: &[u8]) -> Result<()> {
        let intent = Intent::giving_back().records(1).value(name.len());
        let mut reservation = self.reserve_change(|| intent)?;
        let turn = self.log_order([node.inode()]);
        let record = {
            let mut meta = node.inode().write();
            if !meta.with_extra_attrs(|extra_attrs| holds(extra_attrs, name)) {
                return Err(Errno::ENODATA);
            }
            if let Some(gone) = meta.extra_attrs().xattrs.remove(name) {
                self.release_kept(name.len() + gone.len());
            }
            meta.ctime = node.inode().time_of_change();
            node.inode().record(&meta)
        };
        self.tell_value(turn, &mut reservation, (node.inode(), record), name, None)
    }

    fn may_set_acl(&self, who: &Caller, node: &Node, name: &[u8]) -> Result<()> {
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

    fn set_acl(&self, who: &Caller, node: &Node, name: &[u8], value: &[u8]) -> Result<()> {
        if !value.is_empty() {
            Acl::check_shape(value)?;
        }
        let parse = || {
            if value.is_empty() {
                Ok(None)
            } else {
                Acl::parse(value)
            }
        };
        match self.may_set_acl(who, node, name) {
            // No default ACL for what has none is no change.
            Err(Errno::EACCES) if parse() == Ok(None) => return Ok(()),
            checked => checked?,
        }
        let acl = parse()?;
        self.keep_acl(who, node, name, acl)
    }

    /// Sets (or removes) an ACL; an access ACL brings the mode along.
    fn keep_acl(&self, who: &Caller, node: &Node, name: &[u8], acl: Option<Acl>) -> Result<()> {
        match self.through() {
            Some(through) => through.keep_acl(who, node, name, acl.as_ref()),
            None => self.keep_acl_behind(who, node, name, acl),
        }
    }

    fn keep_acl_behind(
        &self,
        who: &Caller,
        node: &Node,
        name: &[u8],
        acl: Option<Acl>,
    ) -> Result<()> {
        let len = acl
            .as_ref()
            .map(|acl| name.len() + acl::to_xattr(acl).len());
        let class = match len {
            Some(_) => Class::Growing,
            None => Class::GivingBack,
        };
        let intent = Intent {
            class,
            records: 1,
            ..Intent::default()
        };
        let mut reservation = self.reserve(&match (len, self.pinned) {
            (None, true) => intent,
            (len, _) => intent.value(len.unwrap_or(name.len())),
        })?;
        let turn = self.log_order([node.inode()]);
        let (record, value) = {
            let mut meta = node.inode().write();
            let before = meta.with_extra_attrs(|extra_attrs| kept_acl(extra_attrs, name));
            let mut acl = acl;
            if name == ACL_ACCESS {
                if let Some(held) = &acl {
                    meta.perm = meta.perm & 0o7000 | acl::mode_of(held);
                    if acl::equivalent_mode(held).is_some() {
                        acl = None;
                    }
                }
                if !in_group_or_capable(who, meta.gid) {
                    meta.perm &= !S_ISGID;
                }
                if acl.is_some() || meta.with_extra_attrs(|extra_attrs| extra_attrs.is_some()) {
                    meta.extra_attrs().acl = acl;
                }
            } else if acl.is_some() || meta.with_extra_attrs(|extra_attrs| extra_attrs.is_some()) {
                meta.extra_attrs().default_acl = acl;
            }
            meta.ctime = node.inode().time_of_change();
            let value = meta.with_extra_attrs(|extra_attrs| {
                let kept = match extra_attrs {
                    Some(extra_attrs) if name == ACL_ACCESS => extra_attrs.acl.as_ref(),
                    Some(extra_attrs) => extra_attrs.default_acl.as_ref(),
                    None => None,
                };
                kept.map(acl::to_xattr)
            });
            if self.pinned {
                // What is not stored, because the mode says it all, goes back.
                reservation
                    .keep_only(meta.with_extra_attrs(|extra_attrs| kept_acl(extra_attrs, name)));
                self.behind.release(Space {
                    bytes: before,
                    ..Space::default()
                });
            }
            (node.inode().record(&meta), value)
        };
        if self.pinned {
            return Ok(());
        }
        self.tell_value(
            turn,
            &mut reservation,
            (node.inode(), record),
            name,
            value.as_deref(),
        )
    }

    /// Tells the store what a value of an inode is from now on, if it is any, with the attributes.
    fn tell_value(
        &self,
        turn: Option<Taken<'_, 1>>,
        reservation: &mut Reservation<'_>,
        (inode, record): (&Inode, InodeRecord),
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        let ino = inode.ino();
        let batch = [
            Change::Xattr { ino, name, value },
            Change::Attributes { inode: record },
        ];
        self.apply_in(turn, reservation, [inode], &batch)
    }
}
