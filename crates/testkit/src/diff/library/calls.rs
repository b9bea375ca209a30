//! Operations on names and attributes, as the core's calls.

use super::{LibraryTarget, Process, inspect};
use crate::diff::op::{Object, Op, When};
use crate::diff::outcome::Outcome;
use holdfast_core::Node;
use holdfast_types::{Errno, OpenFlags, Result, SetAttr, SetTime, Time};

fn done<T>(result: Result<T>) -> Outcome {
    Outcome::done(result.map(drop))
}

impl LibraryTarget {
    /// Runs one operation.
    pub(super) fn call(&mut self, caller: usize, op: &Op) -> Outcome {
        match op {
            Op::Open {
                path,
                flags,
                perm,
                slot,
            } => {
                let _ = self.close(caller, *slot);
                let process = &mut self.processes[caller];
                let flags = *flags | OpenFlags::NONBLOCK;
                match self
                    .fs
                    .open_at(&process.who, &self.root, &path.0, flags, *perm)
                {
                    Ok(file) => process.files[*slot] = Some(file),
                    Err(error) => return Outcome::Failed(error),
                }
                Outcome::Done
            }
            Op::Close { slot } => Outcome::done(self.close(caller, *slot)),
            Op::SetFlags { slot, flags } => {
                let set = |file: &holdfast_core::OpenFile| {
                    file.set_flags(*flags | OpenFlags::NONBLOCK);
                };
                Outcome::done(self.processes[caller].file(*slot).map(set))
            }
            Op::Stat { .. }
            | Op::Chmod { .. }
            | Op::Chown { .. }
            | Op::Truncate { .. }
            | Op::Utimens { .. }
            | Op::Access { .. } => self.attributes(caller, op).unwrap_or_else(Outcome::Failed),
            Op::GetXattr { .. }
            | Op::SetXattr { .. }
            | Op::ListXattr { .. }
            | Op::RemoveXattr { .. } => self.xattrs(caller, op).unwrap_or_else(Outcome::Failed),
            Op::StatFs { path } => Outcome::number(self.name_max(caller, &path.0)),
            Op::SyncFs { slot } => Outcome::done(
                self.processes[caller]
                    .file(*slot)
                    .and_then(|_| self.fs.sync()),
            ),
            Op::Mkdir { .. }
            | Op::Mknod { .. }
            | Op::Symlink { .. }
            | Op::Readlink { .. }
            | Op::Link { .. }
            | Op::LinkOpen { .. }
            | Op::Unlink { .. }
            | Op::Rmdir { .. }
            | Op::Rename { .. } => self.names(caller, op),
            _ => self.data(caller, op),
        }
    }

    fn names(&self, caller: usize, op: &Op) -> Outcome {
        let process = &self.processes[caller];
        let (fs, who, root) = (&self.fs, &process.who, &self.root);
        match op {
            Op::Mkdir { path, perm } => done(fs.mkdir_at(who, root, &path.0, *perm)),
            Op::Mknod {
                path,
                kind,
                perm,
                rdev,
            } => done(fs.mknod_at(who, root, &path.0, *kind, *perm, *rdev)),
            Op::Symlink { target, path } => done(fs.symlink_at(who, root, &path.0, &target.0)),
            Op::Readlink { path } => {
                let link = fs.resolve(who, root, &path.0, false);
                Outcome::data(link.and_then(|link| fs.readlink(&link)).map(Vec::from))
            }
            Op::Link { from, to, follow } => {
                let from = fs.resolve(who, root, &from.0, *follow);
                done(from.and_then(|from| fs.link_at(who, &from, root, &to.0)))
            }
            Op::LinkOpen { slot, to } => {
                let file = process.handle(*slot);
                done(file.and_then(|file| fs.link_at(who, file.node(), root, &to.0)))
            }
            Op::Unlink { path } => done(fs.unlink_at(who, root, &path.0)),
            Op::Rmdir { path } => done(fs.rmdir_at(who, root, &path.0)),
            Op::Rename { from, to, flags } => {
                done(fs.rename_at(who, root, &from.0, root, &to.0, *flags))
            }
            _ => unreachable!("sorted by call"),
        }
    }

    /// The node of an object. A handle to the name only is refused unless `path_too`.
    fn node(&self, process: &Process, object: &Object, path_too: bool) -> Result<Node> {
        match object {
            Object::Path(path) => self.fs.resolve(&process.who, &self.root, &path.0, true),
            Object::Link(path) => self.fs.resolve(&process.who, &self.root, &path.0, false),
            Object::File(slot) if path_too => Ok(process.handle(*slot)?.node().clone()),
            Object::File(slot) => Ok(process.file(*slot)?.node().clone()),
        }
    }

    fn attributes(&self, caller: usize, op: &Op) -> Result<Outcome> {
        let process = &self.processes[caller];
        let (fs, who) = (&self.fs, &process.who);
        let set = match op {
            Op::Access { path, want, follow } => {
                let node = fs.resolve(who, &self.root, &path.0, *follow)?;
                return Ok(done(fs.access(who, &node, *want)));
            }
            Op::Stat { object } => {
                let node = self.node(process, object, true)?;
                return Ok(Outcome::Attributes(inspect::view(&fs.getattr(&node))));
            }
            Op::Truncate { object, len } => {
                if let Object::File(slot) = object {
                    process.handle(*slot)?;
                }
                // The kernel looks at the length before it looks for the file.
                let size = u64::try_from(*len).map_err(|_| Errno::EINVAL)?;
                let through = match object {
                    Object::File(slot) => Some(process.file(*slot)?),
                    _ => None,
                };
                let node = self.node(process, object, false)?;
                let set = SetAttr {
                    size: Some(size),
                    ..SetAttr::default()
                };
                return Ok(done(fs.setattr(who, &node, &set, through)));
            }
            Op::Chmod { perm, .. } => SetAttr {
                perm: Some(*perm),
                ..SetAttr::default()
            },
            Op::Chown { uid, gid, .. } => SetAttr {
                uid: *uid,
                gid: *gid,
                ..SetAttr::default()
            },
            Op::Utimens { atime, mtime, .. } => {
                let object = op.object().expect("utimens has one");
                if let Object::File(slot) = object {
                    process.handle(*slot)?;
                }
                if (*atime, *mtime) == (When::Omit, When::Omit) {
                    return Ok(Outcome::Done);
                }
                self.node(process, object, false)?;
                if !is_valid(*atime) || !is_valid(*mtime) {
                    return Err(Errno::EINVAL);
                }
                SetAttr {
                    atime: set_time(*atime),
                    mtime: set_time(*mtime),
                    ..SetAttr::default()
                }
            }
            _ => unreachable!("sorted by call"),
        };
        let object = op.object().expect("the others have one object");
        let node = self.node(process, object, false)?;
        Ok(done(fs.setattr(who, &node, &set, None)))
    }

    fn xattrs(&self, caller: usize, op: &Op) -> Result<Outcome> {
        let process = &self.processes[caller];
        let (fs, who) = (&self.fs, &process.who);
        let object = op.object().expect("xattr operations have one object");
        // The kernel takes name and value in before it looks at the file.
        if let Object::File(slot) = object {
            process.handle(*slot)?;
        }
        if let Op::GetXattr { name, .. } | Op::SetXattr { name, .. } | Op::RemoveXattr { name, .. } =
            op
            && (name.0.is_empty() || name.0.len() > 255)
        {
            return Err(Errno::ERANGE);
        }
        let node = self.node(process, object, false);
        match op {
            Op::GetXattr { name, .. } => Ok(Outcome::data(
                fs.getxattr(who, &node?, &name.0).map(Vec::from),
            )),
            Op::SetXattr {
                name, value, how, ..
            } => {
                if value.0.len() > 65_536 {
                    return Err(Errno::E2BIG);
                }
                Ok(done(fs.setxattr(who, &node?, &name.0, &value.0, *how)))
            }
            Op::ListXattr { .. } => {
                let list = fs.listxattr(who, &node?)?;
                Ok(Outcome::XattrNames(inspect::split_names(&list)))
            }
            Op::RemoveXattr { name, .. } => Ok(done(fs.removexattr(who, &node?, &name.0))),
            _ => unreachable!("sorted by call"),
        }
    }

    fn name_max(&self, caller: usize, path: &[u8]) -> Result<u64> {
        self.fs
            .resolve(&self.processes[caller].who, &self.root, path, true)?;
        let stat = self.fs.statfs()?;
        let sane = stat.block_size > 0
            && stat.blocks_free <= stat.blocks
            && stat.blocks_available <= stat.blocks_free
            && stat.files_free <= stat.files;
        if sane {
            Ok(stat.name_max.into())
        } else {
            Err(Errno::EUCLEAN)
        }
    }
}

fn is_valid(when: When) -> bool {
    !matches!(when, When::At(_, nanos) if nanos > 999_999_999)
}

fn set_time(when: When) -> Option<SetTime> {
    match when {
        When::Omit => None,
        When::Now => Some(SetTime::Now),
        When::At(secs, nanos) => Some(SetTime::At(Time::new(secs, nanos))),
    }
}
