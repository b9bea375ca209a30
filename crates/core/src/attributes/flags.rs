//! File flags and projects (ioctl_iflags(2), chattr(1)): how they are told and set, and what they refuse.
//!
//! *Invariants.* An inode has only flags that [its type can have](FileFlags::of_kind). What *immutable* and *append* refuse they
//! refuse to every caller, root and callers whose permissions were checked elsewhere included: a kernel in front
//! knows nothing of these flags.

use crate::FileSystem;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _};
use crate::node::Node;
use crate::permission::owns;
use crate::store::{Change, Intent};
use crate::types::{Caller, Caps, Errno, FileFlags, Result, SetAttr, SetTime};
use crate::watch::EventMask;

impl FileSystem {
    /// The flags of an inode.
    #[must_use]
    pub fn flags(&self, node: &Node) -> FileFlags {
        node.inode().meta().flags
    }

    /// The project that an inode is of: a number that is kept, and has no meaning here.
    #[must_use]
    pub fn project(&self, node: &Node) -> u32 {
        node.inode().project()
    }

    /// Sets all flags of an inode, and its project; either stays as it is if it is not given.
    ///
    /// # Errors
    /// `EPERM` unless owner, and without `CAP_LINUX_IMMUTABLE` for a change of *immutable* or *append*; `EOPNOTSUPP` for flags
    /// that this inode cannot have, and for any on a store that keeps none; `EROFS`, `ENOSPC`; what a store answers that is written through.
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
        if let Some(through) = core.through() {
            let changed = flags_now ^ meta.flags;
            if changed.intersects(FileFlags::PROTECTING) && !who.has(Caps::LINUX_IMMUTABLE) {
                return Err(Errno::EPERM);
            }
            return through.set_flags(who, node, flags, project);
        }
        let mut reservation = core.reserve_change(|| Intent::changing().records(1))?;
        let record = {
            let mut meta = inode.write();
            let changed = flags.map_or(FileFlags::empty(), |flags| flags ^ meta.flags);
            if changed.intersects(FileFlags::PROTECTING) && !who.has(Caps::LINUX_IMMUTABLE) {
                return Err(Errno::EPERM);
            }
            meta.flags = flags.unwrap_or(meta.flags);
            let held = meta.with_extra_attrs(|extra_attrs| {
                extra_attrs.map_or(0, |extra_attrs| extra_attrs.project)
            });
            if let Some(project) = project.filter(|project| *project != held) {
                meta.extra_attrs().project = project;
            }
            meta.ctime = inode.time_of_change();
            let mut record = inode.record(&meta);
            record.project = project.unwrap_or(held);
            record
        };
        let changes = [Change::Attributes { inode: record }];
        core.apply(&mut reservation, [inode], &changes)?;
        core.notify_event(inode, EventMask::ATTRIB);
        core.notify_inode(who, node.ino(), false);
        Ok(())
    }
}

impl Core {
    /// Do the inode's flags allow this change of attributes?
    ///
    /// # Errors
    /// `EPERM`.
    pub(super) fn flags_allow(&self, inode: &Inode, set: &SetAttr) -> Result<()> {
        let protection = inode.protection();
        if protection.is_empty() {
            return Ok(());
        }
        let explicit = |time| matches!(time, Some(SetTime::At(_)));
        // A kernel that keeps the clock of what it has written sends its times with the time of change.
        let times = explicit(set.atime) || explicit(set.mtime) && set.ctime.is_none();
        let attributes = set.perm.is_some() || set.uid.is_some() || set.gid.is_some();
        match protection.contains(FileFlags::IMMUTABLE) {
            true => Err(Errno::EPERM),
            false if attributes || times || set.size.is_some() => Err(Errno::EPERM),
            false => Ok(()),
        }
    }
}
