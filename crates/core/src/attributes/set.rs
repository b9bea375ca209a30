//! setattr: chmod, chown, truncate and utimensat in one call, as front ends receive them.

use crate::attributes::privileges::{clear_privileges, take_capability};
use holdfast_cache::Pages;
use holdfast_sync::epoch;

use crate::acl::ACL_ACCESS;
use crate::attributes::flags::flags_allow;
use crate::core::Core;
use crate::events::notify_event;
use crate::inode::{Inode, Meta, MetaWrite, Numbered as _};
use crate::io::resize::resize_file;
use crate::node::Node;
use crate::notify::notify_inode;
use crate::open_file::OpenFile;
use crate::permission::{in_group_or_capable, may_access, owns, set_id_bits_lost};
use crate::quota::{Check, Owner};
use crate::shared::refresh_inode;
use crate::store::{Attributes, Change, Intent, Operation};
use crate::through::Changed;
use crate::transaction::{Begun, begin};
use crate::types::{
    Access, Attr, Caller, Caps, Errno, FileType, OpenFlags, Result, S_ISGID, S_ISUID, SetAttr,
    SetTime,
};
use crate::watch::EventMask;
use crate::xattr::CAPABILITY;
use crate::{FileSystem, acl};

impl FileSystem {
    /// Changes attributes, all or none, and returns the new ones. `through`: the open file of an
    /// ftruncate(2); its access mode stands for a permission to write.
    ///
    /// Setting both times to now, and nothing else, needs only permission to write, as utime(2)
    /// without times. A change of owner or group clears set-id bits of files.
    ///
    /// # Errors
    /// `EPERM` unless owner (mode, owner, explicit times), and where the inode's flags forbid it.
    /// `EACCES` without permission to write. `EBADF` through a handle to the name only. `EISDIR` or
    /// `EINVAL` for the size of an inode that is no regular file. `EFBIG`, `EROFS`, `ENOSPC`.
    /// `EDQUOT` if the new owner's quota is exceeded.
    pub fn setattr(
        &self,
        who: &Caller,
        node: &Node,
        set: &SetAttr,
        through: Option<&OpenFile>,
    ) -> Result<Attr> {
        let core = &self.core;
        if through.is_some_and(|file| file.flags().contains(OpenFlags::PATH)) {
            return Err(Errno::EBADF);
        }
        if let Some(size) = set.size {
            check_resize(core, who, node, size, through)?;
        }
        core.writable()?;
        // The owner may be another by now.
        refresh_inode(core, node.inode())?;
        flags_allow(node.inode(), set)?;
        check_change(core, who, node, set)?;
        let mut rest = *set;
        if let Some(size) = set.size {
            let owner = SetAttr {
                uid: rest.uid.take(),
                gid: rest.gid.take(),
                ..SetAttr::default()
            };
            if owner != SetAttr::default() {
                // The change of owner can be refused (`EDQUOT`), so it precedes the resize.
                change_meta(core, who, node, &owner)?;
            }
            let sets_times = through.is_some() || set.mtime.is_some();
            resize_file(core, who, node, size, sets_times)?;
        }
        if rest.size.take().is_none() || rest != SetAttr::default() {
            change_meta(core, who, node, &rest)?;
        }
        notify_inode(core, who, node.ino(), set.size.is_some());
        Ok(self.getattr(node))
    }

    /// Clears the privileges of a file's content: set-user-id, set-group-id where the group may
    /// execute (elsewhere it has another meaning), and file capabilities. For front ends that
    /// receive the decision from a kernel (FUSE's `KILL_SUIDGID`).
    ///
    /// # Errors
    /// `EROFS`; `EPERM` if the file is immutable; the store's errors.
    pub fn drop_privileges(&self, node: &Node) -> Result<()> {
        self.core.writable()?;
        node.inode().not_immutable()?;
        clear_privileges(&self.core, node, |meta| {
            meta.perm & S_ISUID | group_lends(meta)
        })
    }
}

fn check_resize(
    core: &Core,
    who: &Caller,
    node: &Node,
    size: u64,
    through: Option<&OpenFile>,
) -> Result<()> {
    if size > i64::MAX as u64 {
        return Err(Errno::EINVAL);
    }
    let regular = node.inode().regular();
    if through.is_some() && regular.is_err() {
        return Err(Errno::EINVAL);
    }
    regular?;
    match through {
        Some(file) if file.flags().writable() => Ok(()),
        Some(_) => Err(Errno::EINVAL),
        None => may_access(core, who, node.inode(), Access::WRITE),
    }
}

/// Checks that the caller may change these attributes, by the rules of Linux's
/// `setattr_prepare`.
fn check_change(core: &Core, who: &Caller, node: &Node, set: &SetAttr) -> Result<()> {
    if who.checked {
        return Ok(());
    }
    let (mine, uid, gid) = {
        let meta = node.inode().meta();
        (owns(who, &meta), meta.uid, meta.gid)
    };
    if let Some(new) = set.uid
        && !(who.uid == uid && new == uid)
        && !who.has(Caps::CHOWN)
    {
        return Err(Errno::EPERM);
    }
    if let Some(new) = set.gid
        && !(who.uid == uid && (new == gid || who.in_group(new)))
        && !who.has(Caps::CHOWN)
    {
        return Err(Errno::EPERM);
    }
    if set.perm.is_some() && !mine {
        return Err(Errno::EPERM);
    }
    match (set.atime, set.mtime) {
        (Some(SetTime::Now), Some(SetTime::Now)) if !mine => {
            may_access(core, who, node.inode(), Access::WRITE)
        }
        // A truncation through a kernel sets only mtime to now.
        (None, Some(SetTime::Now)) if set.size.is_some() => Ok(()),
        (None, None) => Ok(()),
        _ if mine => Ok(()),
        _ => Err(Errno::EPERM),
    }
}

/// Changes all attributes but the size.
fn change_meta(core: &Core, who: &Caller, node: &Node, set: &SetAttr) -> Result<()> {
    let (inode, ino) = (node.inode(), node.ino());
    let chown = set.uid.is_some() || set.gid.is_some();
    let loses_capability = chown && !node.kind().is_dir();
    let perm = perm_after(who, node.kind(), &inode.meta(), set);
    let acl = acl_to_set(inode, perm);
    let operation = Operation::SetAttributes {
        ino,
        set: Attributes {
            perm,
            uid: set.uid,
            gid: set.gid,
            atime: set.atime,
            mtime: set.mtime,
            acl: acl.as_deref(),
            drops_capability: false,
        },
    };
    let intent = || {
        let mut intent = Intent::changing().records(1);
        if loses_capability && inode.may_have_extra_attrs() {
            intent = intent.value(CAPABILITY.len());
        }
        if let Some(acl) = &acl {
            intent = intent.value(ACL_ACCESS.len() + acl.len());
        }
        intent
    };
    match begin(core, intent, |through| through.perform(who, &operation))? {
        Begun::Done(performed) => performed.update(node, Changed::Rest)?,
        Begun::Decide(transaction) => {
            // While the page lock is held, no writer charges pages to an owner.
            let pages = inode.regular().ok().filter(|_| chown);
            let pages = pages.map(Pages::lock);
            let transaction = transaction.lock([inode]);
            let acl = {
                let mut meta = inode.write();
                if chown {
                    let pages = pages.as_ref().map_or(0, |pages| pages.pages());
                    charge_to(core, who, node, set, pages)?;
                    if loses_capability {
                        take_capability(core, &mut meta);
                    }
                }
                set_in_memory(who, node, set, &mut meta)
            };
            drop(pages);
            let attributes = Change::Attributes {
                inode: inode.record(&inode.meta()),
            };
            let acl = acl.as_deref().map(|acl| (ACL_ACCESS, Some(acl)));
            let capability = loses_capability.then_some((CAPABILITY, None));
            let values = acl.into_iter().chain(capability);
            let values = values.map(|(name, value)| Change::Xattr { ino, name, value });
            let batch: Vec<_> = std::iter::once(attributes).chain(values).collect();
            transaction.commit(&batch)?;
        }
    }
    notify_event(core, inode, event_of(set));
    Ok(())
}

/// Moves the quota charge of an inode to its new owner. The caller holds the lock of its
/// attributes, and that of its pages if it is a regular file.
fn charge_to(core: &Core, who: &Caller, node: &Node, set: &SetAttr, pages: u64) -> Result<()> {
    let inode = node.inode();
    let old = inode.owner();
    let new = Owner {
        uid: set.uid.unwrap_or(old.uid),
        gid: set.gid.unwrap_or(old.gid),
    };
    let check = Check::of(who);
    core.quotas
        .change_owner(inode.mark(), old, new, pages, check)
}

/// The access control list of an inode with new permission bits.
fn acl_to_set(inode: &Inode, perm: Option<u16>) -> Option<Box<[u8]>> {
    let perm = perm.filter(|_| inode.may_have_extra_attrs())?;
    let guard = epoch::pin();
    let mut acl = inode.view(&guard).acl()?.clone();
    acl::chmod(&mut acl, perm);
    Some(acl::to_xattr(&acl))
}

/// Sets the attributes of an inode; returns its new access control list if that changes.
fn set_in_memory(
    who: &Caller,
    node: &Node,
    set: &SetAttr,
    meta: &mut MetaWrite<'_>,
) -> Option<Box<[u8]>> {
    let now = node.inode().time_of_change();
    let at = |time| match time {
        SetTime::Now => now,
        SetTime::At(time) => time,
    };
    if set.uid.is_some() || set.gid.is_some() {
        meta.perm = perm_of_owner(who, node.kind(), meta, set);
        meta.uid = set.uid.unwrap_or(meta.uid);
        meta.gid = set.gid.unwrap_or(meta.gid);
    }
    let perm = set.perm;
    let acl = perm.and_then(|perm| change_mode(who, node.kind(), perm, meta));
    meta.atime = set.atime.map_or(meta.atime, at);
    meta.mtime = set.mtime.map_or(meta.mtime, at);
    meta.ctime = set.ctime.map_or(now, at);
    acl
}

/// Set-group-id, if the group may execute the file.
fn group_lends(meta: &Meta) -> u16 {
    if meta.perm & 0o010 != 0 {
        meta.perm & S_ISGID
    } else {
        0
    }
}

/// The permission bits to set: those that were requested, without those that a change of owner
/// clears. `None`: no change.
fn perm_after(who: &Caller, kind: FileType, meta: &Meta, set: &SetAttr) -> Option<u16> {
    let mut after = *meta;
    if set.uid.is_some() || set.gid.is_some() {
        after.perm = perm_of_owner(who, kind, meta, set);
        after.gid = set.gid.unwrap_or(meta.gid);
    }
    match set.perm {
        Some(_) if kind == FileType::Symlink => None,
        Some(perm) => Some(perm_of_mode(who, perm, after.gid)),
        None => Some(after.perm).filter(|perm| *perm != meta.perm),
    }
}

/// The permission bits after a change of owner or group.
fn perm_of_owner(who: &Caller, kind: FileType, meta: &Meta, set: &SetAttr) -> u16 {
    if kind.is_dir() {
        return meta.perm;
    }
    let left = meta.perm & !set_id_bits_lost(who, meta);
    // If set-user-id was cleared, Linux sets the mode again by the rule for the new group.
    let is_set_anew = meta.perm & S_ISUID != 0;
    match is_set_anew && !in_group_or_capable(who, set.gid.unwrap_or(meta.gid)) {
        true => left & !S_ISGID,
        false => left,
    }
}

/// The permission bits of an inode of this group, out of those that the caller asked for.
fn perm_of_mode(who: &Caller, perm: u16, gid: u32) -> u16 {
    match perm & S_ISGID != 0 && !in_group_or_capable(who, gid) {
        true => perm & 0o7777 & !S_ISGID,
        false => perm & 0o7777,
    }
}

/// The event that a change of attributes sends to watchers.
fn event_of(set: &SetAttr) -> EventMask {
    let touches = set.perm.is_some() || set.uid.is_some() || set.gid.is_some();
    match (touches, set.atime, set.mtime) {
        // inotify reports a change of atime alone as an access, and of mtime alone as a
        // modification.
        (false, Some(_), None) => EventMask::ACCESS,
        (false, None, Some(_)) => EventMask::MODIFY,
        _ => EventMask::ATTRIB,
    }
}

/// Sets the mode, and the corresponding entries of the ACL; returns the ACL if there is one.
fn change_mode(
    who: &Caller,
    kind: FileType,
    perm: u16,
    meta: &mut MetaWrite<'_>,
) -> Option<Box<[u8]>> {
    if kind == FileType::Symlink {
        // Linux never changes the mode of a symbolic link.
        return None;
    }
    let perm = perm_of_mode(who, perm, meta.gid);
    meta.perm = perm;
    if !meta.with_extra_attrs(|extra_attrs| {
        extra_attrs.is_some_and(|extra_attrs| extra_attrs.acl.is_some())
    }) {
        return None;
    }
    let acl = meta.extra_attrs().acl.as_mut()?;
    crate::acl::chmod(acl, perm);
    Some(crate::acl::to_xattr(acl))
}
