//! A shared store as it is written through: each operation at once, under its lock, by the rules
//! that the core has told it with it.

use super::super::Call;
use super::SharedStore;
use super::state::{Inode, SharedState};
use holdfast_core::store::{
    Attributes, Done, New, Operation, Shared as _, Through, Touched, Version,
};
use holdfast_types::{
    Caller, Errno, Fallocate, FileType, Ino, RenameFlags, Result, SetTime, XattrSet,
};
use std::collections::BTreeMap;
use std::io::IoSlice;

const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
const ACL_DEFAULT: &[u8] = b"system.posix_acl_default";
const CAPABILITY: &[u8] = b"security.capability";
/// Largest size of a file.
const SIZE_MAX: u64 = i64::MAX as u64;

/// What an operation did, without the records.
#[derive(Default)]
struct Did {
    entry: Option<Ino>,
    other: Option<Ino>,
    touched: Vec<Ino>,
    count: u64,
    start: u64,
}

impl Did {
    fn to(touched: impl Into<Vec<Ino>>) -> Self {
        Self {
            touched: touched.into(),
            ..Self::default()
        }
    }
}

impl Through for SharedStore {
    fn perform(&self, caller: &Caller, operation: &Operation<'_>) -> Result<Done> {
        let mut held = self.ask(Call::Perform);
        let version = |ino: Ino| Some((ino, held.inodes.get(&ino)?.version()));
        let subjects = held.subjects(operation).into_iter();
        let before: BTreeMap<Ino, Version> = subjects.flatten().filter_map(version).collect();
        let did = held.does(caller, operation)?;
        let at = self.now();
        let kind = |ino: Ino| held.record(ino).map(|record| (ino, record.kind));
        let made = matches!(
            operation,
            Operation::Make { .. } | Operation::MakeUnnamed { .. }
        );
        if let (true, Some(ino)) = (made, did.entry) {
            self.known.lock().insert(ino);
        }
        let touched = |ino: &Ino| {
            Some(Touched {
                before: before.get(ino).copied(),
                record: held.record(*ino)?,
            })
        };
        let done = Done {
            entry: did.entry.and_then(kind),
            other: did.other.and_then(kind),
            touched: match self.is_silent() {
                true => Vec::new(),
                false => did.touched.iter().filter_map(touched).collect(),
            },
            count: did.count,
            start: did.start,
            ..Done::at(at)
        };
        drop(held);
        self.answered();
        Ok(done)
    }
}

impl SharedState {
    /// What an operation may touch of what is there.
    fn subjects(&self, operation: &Operation<'_>) -> [Option<Ino>; 4] {
        match *operation {
            Operation::Make { dir, .. } | Operation::MakeUnnamed { dir, .. } => {
                [Some(dir), None, None, None]
            }
            Operation::Link { ino, dir, .. } => [Some(ino), Some(dir), None, None],
            Operation::Remove { dir, name, .. } => [Some(dir), self.child(dir, name), None, None],
            Operation::Rename { from, to, .. } => [
                Some(from.0),
                Some(to.0),
                self.child(from.0, from.1),
                self.child(to.0, to.1),
            ],
            Operation::Copy { to, .. } => [Some(to.0), None, None, None],
            Operation::SetAttributes { ino, .. }
            | Operation::SetFlags { ino, .. }
            | Operation::Resize { ino, .. }
            | Operation::Write { ino, .. }
            | Operation::Allocate { ino, .. }
            | Operation::SetXattr { ino, .. }
            | Operation::RemoveXattr { ino, .. } => [Some(ino), None, None, None],
        }
    }

    fn does(&mut self, caller: &Caller, operation: &Operation<'_>) -> Result<Did> {
        match *operation {
            Operation::Make {
                dir,
                name,
                new,
                open,
            } => {
                self.free_name(dir, name)?;
                let ino = self.new_inode(caller, dir, &new, open)?;
                self.enter(dir, name, ino);
                Ok(Did {
                    entry: Some(ino),
                    ..Did::to([dir, ino])
                })
            }
            Operation::MakeUnnamed { dir, new, .. } => {
                let ino = self.new_inode(caller, dir, &new, true)?;
                Ok(Did {
                    entry: Some(ino),
                    ..Did::to([ino])
                })
            }
            Operation::Link { ino, dir, name } => {
                self.free_name(dir, name)?;
                self.inode(ino)?;
                self.enter(dir, name, ino);
                Ok(Did {
                    entry: Some(ino),
                    ..Did::to([dir, ino])
                })
            }
            Operation::Remove {
                dir,
                name,
                directory,
            } => {
                let ino = self.child(dir, name).ok_or(Errno::ENOENT)?;
                self.may_go(ino, directory)?;
                self.leave(dir, name);
                Ok(Did {
                    entry: Some(ino),
                    ..Did::to([dir, ino])
                })
            }
            Operation::Rename {
                from, to, flags, ..
            } => self.rename(from, to, flags),
            _ => self.does_to_one(operation),
        }
    }

    /// What changes one inode, and no name.
    fn does_to_one(&mut self, operation: &Operation<'_>) -> Result<Did> {
        match *operation {
            Operation::SetAttributes { ino, set } => self.set(ino, &set).map(|()| Did::to([ino])),
            Operation::SetFlags {
                ino,
                flags,
                project,
            } => {
                let inode = self.inode(ino)?;
                let record = inode.meta();
                record.flags = flags.unwrap_or(record.flags);
                record.project = project.unwrap_or(record.project);
                self.touched(ino);
                Ok(Did::to([ino]))
            }
            Operation::Resize { ino, size, .. } => {
                let file = self.file(ino)?;
                file.pages.truncate(size);
                file.meta().size = size;
                self.changed(ino);
                Ok(Did::to([ino]))
            }
            Operation::Write { ino, offset, bufs } => self.write(ino, offset, bufs),
            Operation::Allocate {
                ino,
                mode,
                offset,
                len,
            } => self.allocate(ino, mode, offset, len),
            Operation::Copy { .. } => Err(Errno::EOPNOTSUPP),
            Operation::SetXattr {
                ino,
                name,
                value,
                how,
                perm,
                kept,
            } => {
                let value = kept.then_some(value);
                self.set_xattr(ino, name, value, how, perm)
            }
            Operation::RemoveXattr { ino, name, .. } => {
                let inode = self.inode(ino)?;
                inode.xattrs.remove(name).ok_or(Errno::ENODATA)?;
                self.touched(ino);
                Ok(Did::to([ino]))
            }
            _ => Err(Errno::EINVAL),
        }
    }

    pub(super) fn inode(&mut self, ino: Ino) -> Result<&mut Inode> {
        self.inodes.get_mut(&ino).ok_or(Errno::ESTALE)
    }

    pub(super) fn file(&mut self, ino: Ino) -> Result<&mut Inode> {
        let inode = self.inode(ino)?;
        match inode.meta().kind {
            FileType::Regular => Ok(inode),
            _ => Err(Errno::EINVAL),
        }
    }

    /// An inode changes now, but not its content.
    fn touched(&mut self, ino: Ino) {
        let time = self.tick();
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.meta().ctime = time;
        }
    }

    /// Is this name free, in a directory that is there?
    fn free_name(&mut self, dir: Ino, name: &[u8]) -> Result<()> {
        if self.child(dir, name).is_some() {
            return Err(Errno::EEXIST);
        }
        let parent = self.inode(dir)?;
        match (parent.nlink(), parent.names.is_some()) {
            (0, _) => Err(Errno::ENOENT),
            (_, false) => Err(Errno::ENOTDIR),
            _ => Ok(()),
        }
    }

    fn new_inode(&mut self, caller: &Caller, dir: Ino, new: &New<'_>, open: bool) -> Result<Ino> {
        if self.inode(dir)?.nlink() == 0 {
            return Err(Errno::ENOENT);
        }
        let ino = self.make_unnamed(new.kind, new.perm);
        let inode = self.inode(ino)?;
        let record = inode.meta();
        (record.uid, record.gid, record.rdev) = (caller.uid, new.gid, new.rdev);
        record.size = new.target.map_or(0, <[u8]>::len) as u64;
        inode.target = new.target.map(Into::into);
        for (acl, name) in new.acls.iter().zip([ACL_ACCESS, ACL_DEFAULT]) {
            if let Some(acl) = acl {
                inode.xattrs.insert(name.into(), (*acl).into());
            }
        }
        inode.open = u32::from(open);
        Ok(ino)
    }

    /// Can what is of this number lose its name, as a directory or as anything else?
    fn may_go(&mut self, ino: Ino, directory: bool) -> Result<()> {
        match (directory, &self.inode(ino)?.names) {
            (true, None) => Err(Errno::ENOTDIR),
            (false, Some(_)) => Err(Errno::EISDIR),
            (true, Some(names)) if !names.is_empty() => Err(Errno::ENOTEMPTY),
            _ => Ok(()),
        }
    }

    fn rename(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), flags: RenameFlags) -> Result<Did> {
        let source = self.child(from.0, from.1).ok_or(Errno::ENOENT)?;
        let target = self.child(to.0, to.1);
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        match target {
            Some(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EEXIST),
            None if exchange => return Err(Errno::ENOENT),
            None if self.inode(to.0)?.nlink() == 0 => return Err(Errno::ENOENT),
            _ => {}
        }
        if self.is_above(source, to.0)
            || exchange && target.is_some_and(|it| self.is_above(it, from.0))
        {
            return Err(Errno::EINVAL);
        }
        if target == Some(source) {
            return Ok(Did {
                entry: Some(source),
                ..Did::default()
            });
        }
        let is_dir = self.inode(source)?.names.is_some();
        if let (Some(target), false) = (target, exchange) {
            self.may_go(target, is_dir)?;
        }
        let gone = target.and_then(|_| self.leave(to.0, to.1));
        let nlink = self.inode(source)?.nlink();
        self.leave(from.0, from.1);
        self.enter(to.0, to.1, source);
        if let (true, Some(target)) = (exchange, gone) {
            self.enter(from.0, from.1, target);
        }
        debug_assert_eq!(self.inode(source)?.nlink(), nlink, "it has as many names");
        let mut touched = vec![from.0, to.0, source];
        touched.extend(target);
        if flags.contains(RenameFlags::WHITEOUT) {
            let whiteout = self.make_unnamed(FileType::CharDevice, 0);
            self.enter(from.0, from.1, whiteout);
        }
        touched.dedup();
        Ok(Did {
            entry: Some(source),
            other: target,
            ..Did::to(touched)
        })
    }

    /// Is this inode a directory above another, or that one itself?
    fn is_above(&mut self, ino: Ino, mut dir: Ino) -> bool {
        loop {
            if dir == ino {
                return true;
            }
            match self.record(dir) {
                Some(record) if dir != Ino::ROOT => dir = record.parent,
                _ => return false,
            }
        }
    }

    fn set(&mut self, ino: Ino, set: &Attributes<'_>) -> Result<()> {
        let now = self.tick();
        let inode = self.inode(ino)?;
        let at = |time| match time {
            SetTime::Now => now,
            SetTime::At(time) => time,
        };
        if let Some(acl) = set.acl {
            inode.xattrs.insert(ACL_ACCESS.into(), acl.into());
        }
        let chown = set.uid.is_some() || set.gid.is_some();
        if set.drops_capability || chown && inode.meta().kind != FileType::Directory {
            inode.xattrs.remove(CAPABILITY);
        }
        let record = inode.meta();
        record.perm = set.perm.unwrap_or(record.perm);
        record.uid = set.uid.unwrap_or(record.uid);
        record.gid = set.gid.unwrap_or(record.gid);
        record.atime = set.atime.map_or(record.atime, at);
        record.mtime = set.mtime.map_or(record.mtime, at);
        record.ctime = now;
        Ok(())
    }

    fn write(&mut self, ino: Ino, offset: Option<u64>, bufs: &[IoSlice<'_>]) -> Result<Did> {
        let file = self.file(ino)?;
        let start = offset.unwrap_or(file.meta().size);
        let mut end = start;
        for buf in bufs {
            let room = usize::try_from(SIZE_MAX.saturating_sub(end)).unwrap_or(usize::MAX);
            let buf = &buf[..buf.len().min(room)];
            file.pages.write(end, buf);
            end += buf.len() as u64;
        }
        if end == start {
            return Err(Errno::EFBIG);
        }
        file.meta().size = file.meta().size.max(end);
        self.changed(ino);
        Ok(Did {
            count: end - start,
            start,
            ..Did::to([ino])
        })
    }

    fn allocate(&mut self, ino: Ino, mode: Fallocate, offset: u64, len: u64) -> Result<Did> {
        let file = self.file(ino)?;
        let size = file.meta().size;
        let mut end = size;
        if mode.contains(Fallocate::PUNCH_HOLE) {
            file.pages.zero(offset, len, false);
        } else if mode.contains(Fallocate::COLLAPSE_RANGE) {
            file.pages.collapse(offset, len);
            end = size - len;
        } else if mode.contains(Fallocate::INSERT_RANGE) {
            file.pages.insert(offset, len);
            end = size + len;
        } else {
            if mode.contains(Fallocate::ZERO_RANGE) {
                file.pages.zero(offset, len, true);
            } else {
                file.pages.allocate(offset, len);
            }
            if !mode.contains(Fallocate::KEEP_SIZE) {
                end = size.max(offset + len);
            }
        }
        file.meta().size = end;
        self.changed(ino);
        Ok(Did::to([ino]))
    }

    fn set_xattr(
        &mut self,
        ino: Ino,
        name: &[u8],
        value: Option<&[u8]>,
        how: XattrSet,
        perm: Option<u16>,
    ) -> Result<Did> {
        let inode = self.inode(ino)?;
        match (how, inode.xattrs.contains_key(name)) {
            (XattrSet::Create, true) => return Err(Errno::EEXIST),
            (XattrSet::Replace, false) => return Err(Errno::ENODATA),
            _ => {}
        }
        match value {
            Some(value) => drop(inode.xattrs.insert(name.into(), value.into())),
            None => drop(inode.xattrs.remove(name)),
        }
        let record = inode.meta();
        record.perm = perm.unwrap_or(record.perm);
        self.touched(ino);
        Ok(Did::to([ino]))
    }
}
