//! setattr: chmod, chown, truncate and utimensat in one call, as front ends get them.

use std::sync::Arc;

use holdfast_cache::Pages;
use holdfast_sync::epoch;

use crate::acl::ACL_ACCESS;
use crate::file_system::{Core, Scope};
use crate::inode::{ExtraAttrs, Meta, MetaWrite, Numbered as _};
use crate::log_order::Taken;
use crate::node::Node;
use crate::open::OpenFile;
use crate::permission::{in_group_or_capable, owns, set_id_bits_lost};
use crate::quota::{Check, Owner};
use crate::store::{Change, Intent, Reservation};
use crate::types::{
    Access, Attr, Caller, Caps, Errno, FileType, OpenFlags, Result, S_ISGID, S_ISUID, SetAttr,
    SetTime,
};
use crate::watch::EventMask;
use crate::xattr::CAPABILITY;
use crate::{FileSystem, acl};

impl FileSystem {
    /// Changes attributes, all or none; returns what they are then. `through`: an open file that
    /// was used (ftruncate(2)); its access mode stands for a permission to write.
    ///
    /// Both times set to now, and nothing else, needs permission to write only, as utime(2) with
    /// no times; a change of owner or group clears set-id bits of files.
    ///
    /// # Errors
    /// `EPERM` unless owner (mode, owner, explicit times), and where the inode's flags forbid it; `EACCES` without permission to write;
    /// `EBADF` through a handle to the name only; `EISDIR` or `EINVAL` for the size of what is not a regular file; `EFBIG`; `EROFS`;
    /// `ENOSPC`; `EDQUOT` if the new owner may not have that much more.
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
            core.check_resize(who, node, size, through)?;
        }
        core.writable()?;
        core.flags_allow(node.inode(), set)?;
        core.check_change(who, node, set)?;
        let mut rest = *set;
        if let Some(size) = set.size {
            let owner = SetAttr {
                uid: rest.uid.take(),
                gid: rest.gid.take(),
                ..SetAttr::default()
            };
            if owner != SetAttr::default() {
                // First what can be refused.
                core.change_meta(who, node, &owner)?;
            }
            let lsn = through.is_some() || set.mtime.is_some();
            core.resize(who, node, size, lsn)?;
        }
        if rest.size.take().is_none() || rest != SetAttr::default() {
            core.change_meta(who, node, &rest)?;
        }
        core.notify_inode(who, node.ino(), set.size.is_some());
        Ok(self.getattr(node))
    }

    /// Clears what lends privileges to a file's content: set-user-id, set-group-id where the
    /// group may execute (elsewhere it has another meaning), and file capabilities. A front end
    /// whose kernel decides when (FUSE's `KILL_SUIDGID`) says so with this call.
    ///
    /// # Errors
    /// `EROFS`; `EPERM` if the file is immutable; what the store answers.
    pub fn drop_privileges(&self, node: &Node) -> Result<()> {
        self.core.writable()?;
        node.inode().not_immutable()?;
        self.core
            .clear_privileges(node, |meta| meta.perm & S_ISUID | group_lends(meta))
    }
}

impl Core {
    fn check_resize(
        &self,
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
            None => self.may(who, node.inode(), Access::WRITE),
        }
    }

    /// May `who` change these attributes? The rules of Linux's `setattr_prepare`.
    fn check_change(&self, who: &Caller, node: &Node, set: &SetAttr) -> Result<()> {
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
                self.may(who, node.inode(), Access::WRITE)
            }
            // A truncation through a kernel brings "now" for the modification alone.
            (None, Some(SetTime::Now)) if set.size.is_some() => Ok(()),
            (None, None) => Ok(()),
            _ if mine => Ok(()),
            _ => Err(Errno::EPERM),
        }
    }

    fn change_meta(&self, who: &Caller, node: &Node, set: &SetAttr) -> Result<()> {
        if let Some(through) = self.through() {
            return through.set(who, node, set);
        }
        let now = node.inode().time_of_change();
        let chown = set.uid.is_some() || set.gid.is_some();
        let mut reservation = self.reserve_change(|| self.intent_to_set(node))?;
        let turn;
        let acl = {
            // While it is locked, its writers know whom to charge.
            let pages = node.inode().regular().ok().filter(|_| chown);
            let pages = pages.map(Pages::lock);
            turn = self.log_order([node.inode()]);
            let mut meta = node.inode().write();
            if chown {
                self.charge_to(
                    who,
                    node,
                    set,
                    pages.as_ref().map_or(0, |pages| pages.pages()),
                )?;
            }
            if let Some(value) = change_owner(who, node, set, &mut meta) {
                self.release_kept(CAPABILITY.len() + value.len());
            }
            let mut acl = None;
            if let Some(perm) = set.perm {
                acl = change_mode(who, node.kind(), perm, &mut meta);
            }
            let at = |time| match time {
                SetTime::Now => now,
                SetTime::At(time) => time,
            };
            if let Some(time) = set.atime {
                meta.atime = at(time);
            }
            if let Some(time) = set.mtime {
                meta.mtime = at(time);
            }
            meta.ctime = set.ctime.map_or(now, at);
            acl
        };
        if !self.pinned {
            self.record_change(turn, &mut reservation, node, set, acl.as_deref())?;
        }
        self.notify_event(node.inode(), event_of(set));
        Ok(())
    }

    /// Tells the store of an inode's new attributes, and of what changed with them.
    fn record_change(
        &self,
        turn: Option<Taken<'_, 1>>,
        reservation: &mut Reservation<'_>,
        node: &Node,
        set: &SetAttr,
        acl: Option<&[u8]>,
    ) -> Result<()> {
        let (inode, ino) = (node.inode(), node.ino());
        let attributes = || Change::Attributes {
            inode: inode.record(&inode.meta()),
        };
        let capability = self.lost_capability(node, set);
        if acl.is_none() && !capability {
            // Nearly always: it needs no memory of its own, nor a look whether others came in between.
            let held = reservation.held();
            return self.in_log_order(turn, Scope::Inodes, || {
                self.behind.apply(held, &[attributes()])
            });
        }
        let acl = acl.map(|acl| (ACL_ACCESS, Some(acl)));
        let capability = capability.then_some((CAPABILITY, None));
        let values = acl.into_iter().chain(capability);
        let values = values.map(|(name, value)| Change::Xattr { ino, name, value });
        let batch: Vec<_> = std::iter::once(attributes()).chain(values).collect();
        self.apply_in(turn, reservation, [inode], &batch)
    }

    /// What other attributes of an inode may take: with the mode its ACL changes, with the owner its capabilities go.
    fn intent_to_set(&self, node: &Node) -> Intent {
        let intent = Intent::changing().records(1);
        if !node.inode().may_have_extra_attrs() {
            return intent;
        }
        let intent = match node.kind().is_dir() {
            true => intent,
            false => intent.value(CAPABILITY.len()),
        };
        let guard = epoch::pin();
        let acl = node.inode().view(&guard).acl().map(acl::to_xattr);
        acl.map_or(intent, |acl| intent.value(ACL_ACCESS.len() + acl.len()))
    }

    /// Moves the charge for an inode to the owner that it gets. Its attributes are locked, and its
    /// pages if it has any.
    fn charge_to(&self, who: &Caller, node: &Node, set: &SetAttr, pages: u64) -> Result<()> {
        let inode = node.inode();
        let old = inode.owner();
        let new = Owner {
            uid: set.uid.unwrap_or(old.uid),
            gid: set.gid.unwrap_or(old.gid),
        };
        let check = Check::of(who);
        self.quotas
            .change_owner(inode.mark(), old, new, pages, check)
    }

    fn lost_capability(&self, node: &Node, set: &SetAttr) -> bool {
        (set.uid.is_some() || set.gid.is_some()) && !node.kind().is_dir()
    }

    /// The content changes: clears set-id bits, if `who` may not keep them, and file
    /// capabilities, which nobody keeps.
    pub(crate) fn drop_privileges(&self, who: &Caller, node: &Node) -> Result<()> {
        let keeps = who.has(Caps::FSETID);
        if keeps && !node.inode().may_have_extra_attrs() {
            return Ok(());
        }
        self.clear_privileges(node, |meta| {
            if keeps {
                0
            } else {
                set_id_bits_lost(who, meta)
            }
        })
    }

    /// Clears a regular file's capabilities and these of its mode bits.
    fn clear_privileges(&self, node: &Node, bits: impl Fn(&Meta) -> u16) -> Result<()> {
        if node.kind() != FileType::Regular {
            return Ok(());
        }
        let carries = |extra_attrs: Option<&ExtraAttrs>| {
            extra_attrs.is_some_and(|extra_attrs| extra_attrs.xattrs.contains_key(CAPABILITY))
        };
        {
            let guard = epoch::pin();
            let view = node.inode().view(&guard);
            if bits(&view.meta) == 0 && !carries(view.extra_attrs) {
                return Ok(());
            }
        }
        if let Some(through) = self.through() {
            return through.clear_privileges(node, bits(&node.inode().meta()));
        }
        let intent = Intent::changing().records(1).value(CAPABILITY.len());
        let mut reservation = self.reserve_change(|| intent)?;
        let mut lost = None;
        let turn = self.log_order([node.inode()]);
        let record = {
            let mut meta = node.inode().write();
            meta.perm &= !bits(&meta);
            if meta.with_extra_attrs(carries) {
                lost = meta.extra_attrs().xattrs.remove(CAPABILITY);
            }
            meta.ctime = node.inode().time_of_change();
            node.inode().record(&meta)
        };
        if let Some(value) = lost {
            self.release_kept(CAPABILITY.len() + value.len());
        }
        let ino = node.ino();
        self.apply_in(
            turn,
            &mut reservation,
            [node.inode()],
            &[
                Change::Attributes { inode: record },
                Change::Xattr {
                    ino,
                    name: CAPABILITY,
                    value: None,
                },
            ],
        )
    }
}

/// Set-group-id, where it lends the group's rights.
fn group_lends(meta: &Meta) -> u16 {
    if meta.perm & 0o010 != 0 {
        meta.perm & S_ISGID
    } else {
        0
    }
}

/// Sets the owner, and clears what goes with the old one; returns the capabilities if there were any.
fn change_owner(
    who: &Caller,
    node: &Node,
    set: &SetAttr,
    meta: &mut MetaWrite<'_>,
) -> Option<Arc<[u8]>> {
    if set.uid.is_none() && set.gid.is_none() {
        return None;
    }
    let mut lost = None;
    let perm = perm_of_owner(who, node.kind(), meta, set);
    if !node.kind().is_dir()
        && meta.with_extra_attrs(|extra_attrs| {
            extra_attrs.is_some_and(|extra_attrs| extra_attrs.xattrs.contains_key(CAPABILITY))
        })
    {
        lost = meta.extra_attrs().xattrs.remove(CAPABILITY);
    }
    meta.uid = set.uid.unwrap_or(meta.uid);
    meta.gid = set.gid.unwrap_or(meta.gid);
    meta.perm = perm;
    lost
}

/// The permission bits that are left with another owner or group.
pub(crate) fn perm_of_owner(who: &Caller, kind: FileType, meta: &Meta, set: &SetAttr) -> u16 {
    if kind.is_dir() {
        return meta.perm;
    }
    let left = meta.perm & !set_id_bits_lost(who, meta);
    // Where set-user-id went, Linux sets the mode anew, by the rule for the new group.
    let is_set_anew = meta.perm & S_ISUID != 0;
    match is_set_anew && !in_group_or_capable(who, set.gid.unwrap_or(meta.gid)) {
        true => left & !S_ISGID,
        false => left,
    }
}

/// The permission bits that an inode of this group gets, of those that were asked for.
pub(crate) fn perm_of_mode(who: &Caller, perm: u16, gid: u32) -> u16 {
    match perm & S_ISGID != 0 && !in_group_or_capable(who, gid) {
        true => perm & 0o7777 & !S_ISGID,
        false => perm & 0o7777,
    }
}

/// What watchers hear of a change of attributes.
pub(crate) fn event_of(set: &SetAttr) -> EventMask {
    let touches = set.perm.is_some() || set.uid.is_some() || set.gid.is_some();
    match (touches, set.atime, set.mtime) {
        // inotify tells a lone access time as an access, a lone modification as one.
        (false, Some(_), None) => EventMask::ACCESS,
        (false, None, Some(_)) => EventMask::MODIFY,
        _ => EventMask::ATTRIB,
    }
}

/// Sets the mode, and the ACL's part of it; returns the ACL if it changed.
fn change_mode(
    who: &Caller,
    kind: FileType,
    perm: u16,
    meta: &mut MetaWrite<'_>,
) -> Option<Box<[u8]>> {
    if kind == FileType::Symlink {
        // Linux keeps the mode of a symbolic link as it was made.
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
