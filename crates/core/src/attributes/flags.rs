//! File flags and projects (ioctl_iflags(2), chattr(1)).
//!
//! *Invariants.* An inode has only flags that [its type can have](FileFlags::of_kind). The
//! flags *immutable* and *append* bind every caller, including root and callers with
//! `Caller::checked`: a kernel in front does not know these flags.

use crate::FileSystem;
use crate::events::notify_event;
use crate::inode::{Inode, Numbered as _};
use crate::node::Node;
use crate::notify::notify_inode;
use crate::permission::owns;
use crate::store::{Change, Intent, Operation};
use crate::through::Changed;
use crate::transaction::{Begun, begin};
use crate::types::{Caller, Caps, Errno, FileFlags, Result, SetAttr, SetTime};
use crate::watch::EventMask;

impl FileSystem {
    /// The flags of an inode.
    #[must_use]
    pub fn flags(&self, node: &Node) -> FileFlags {
        node.inode().meta().flags
    }

    /// The project of an inode: a number that is stored, and has no meaning here.
    #[must_use]
    pub fn project(&self, node: &Node) -> u32 {
        node.inode().project()
    }

    /// Sets all flags of an inode, and its project; `None` leaves either as it is.
    ///
    /// # Errors
    /// `EPERM` unless owner, and without `CAP_LINUX_IMMUTABLE` for a change of *immutable* or
    /// *append*. `EOPNOTSUPP` for flags that this inode cannot have, and for any on a store that
    /// keeps none. `EROFS`, `ENOSPC`. The errors of a store that is written through.
    pub fn set_flags(
        &self,
        who: &Caller,
        node: &Node,
        flags: Option<FileFlags>,
        project: Option<u32>,
    ) -> Result<()> {
        let core = &self.core;
        core.writable()?;
        let inode = node.inode();
        let meta = inode.meta();
        if !owns(who, &meta) {
            return Err(Errno::EPERM);
        }
        let flags_now = flags.unwrap_or(meta.flags);
        if flags_now.of_kind(node.kind()) != flags_now || !FileFlags::all().contains(flags_now) {
            return Err(Errno::EOPNOTSUPP);
        }
        may_set(who, meta.flags, flags)?;
        let operation = Operation::SetFlags {
            ino: node.ino(),
            flags,
            project,
        };
        let intent = || Intent::changing().records(1);
        match begin(core, intent, |through| through.perform(who, &operation))? {
            Begun::Done(performed) => performed.update(node, Changed::Nothing)?,
            Begun::Decide(transaction) => {
                let transaction = transaction.lock([inode]);
                {
                    let mut meta = inode.write();
                    // Another thread may have protected the inode meanwhile.
                    may_set(who, meta.flags, flags)?;
                    meta.flags = flags.unwrap_or(meta.flags);
                    let held = meta.with_extra_attrs(|extra_attrs| {
                        extra_attrs.map_or(0, |extra_attrs| extra_attrs.project)
                    });
                    if let Some(project) = project.filter(|project| *project != held) {
                        meta.extra_attrs().project = project;
                    }
                    meta.ctime = inode.time_of_change();
                }
                let record = inode.record(&inode.meta());
                transaction.commit(&[Change::Attributes { inode: record }])?;
            }
        }
        notify_event(core, inode, EventMask::ATTRIB);
        notify_inode(core, who, node.ino(), false);
        Ok(())
    }
}

/// Only `CAP_LINUX_IMMUTABLE` may change the flags that protect an inode.
fn may_set(who: &Caller, now: FileFlags, flags: Option<FileFlags>) -> Result<()> {
    let changed = flags.map_or(FileFlags::empty(), |flags| flags ^ now);
    match changed.intersects(FileFlags::PROTECTING) && !who.has(Caps::LINUX_IMMUTABLE) {
        true => Err(Errno::EPERM),
        false => Ok(()),
    }
}

/// Do the inode's flags allow this change of attributes?
///
/// # Errors
/// `EPERM`.
pub(super) fn flags_allow(inode: &Inode, set: &SetAttr) -> Result<()> {
    let protection = inode.protection();
    if protection.is_empty() {
        return Ok(());
    }
    let explicit = |time| matches!(time, Some(SetTime::At(_)));
    // A kernel that caches the times of its own writes sends mtime together with ctime.
    let times = explicit(set.atime) || explicit(set.mtime) && set.ctime.is_none();
    let attributes = set.perm.is_some() || set.uid.is_some() || set.gid.is_some();
    match protection.contains(FileFlags::IMMUTABLE) {
        true => Err(Errno::EPERM),
        false if attributes || times || set.size.is_some() => Err(Errno::EPERM),
        false => Ok(()),
    }
}
