//! Each operation as the system call it is named after.

use super::worker::Process;
use super::{errno, inspect, sys};
use crate::diff::op::{Bytes, Object, Op, When};
use crate::diff::outcome::Outcome;
use crate::rng::pattern;
use holdfast_types::{Access, Errno, OpenFlags, Result, Whence, XattrSet, mode_bits};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, FlockOperation, Gid, Mode, OFlags, SeekFrom, Timespec,
    Timestamps, Uid, XattrFlags,
};
use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};

/// Runs one operation as the calling thread.
pub(super) fn run(process: &mut Process, op: &Op) -> Outcome {
    match op {
        Op::Open { .. } | Op::Close { .. } | Op::SetFlags { .. } => files(process, op),
        Op::Pread { .. } | Op::Pwrite { .. } | Op::Append { .. } => transfer(process, op),
        Op::Seek { .. } | Op::Fallocate { .. } | Op::CopyRange { .. } | Op::Fsync { .. } => {
            data(process, op)
        }
        Op::List {
            slot,
            chunk,
            resume,
        } => list(process, *slot, *chunk, *resume),
        Op::ListFrom { slot, after, most } => list_from(process, *slot, *after, *most),
        Op::Stat { .. }
        | Op::Chmod { .. }
        | Op::Chown { .. }
        | Op::Truncate { .. }
        | Op::Utimens { .. }
        | Op::Access { .. } => attributes(process, op),
        Op::GetXattr { .. }
        | Op::SetXattr { .. }
        | Op::ListXattr { .. }
        | Op::RemoveXattr { .. } => xattrs(process, op).unwrap_or_else(Outcome::Failed),
        Op::SetLock { .. } | Op::GetLock { .. } | Op::Flock { .. } => locks(process, op),
        Op::StatFs { .. } | Op::SyncFs { .. } => whole(process, op),
        _ => names(process, op),
    }
}

fn done(result: rustix::io::Result<()>) -> Outcome {
    Outcome::done(result.map_err(errno))
}

fn mode(perm: u16) -> Mode {
    Mode::from_raw_mode(perm.into())
}

fn files(process: &mut Process, op: &Op) -> Outcome {
    match op {
        Op::Open {
            path,
            flags,
            perm,
            slot,
        } => {
            process.files[*slot] = None;
            // Never wait for a fifo's other end; never leak into a child.
            let flags = *flags | OpenFlags::NONBLOCK;
            let flags = OFlags::from_bits_retain(flags.bits().cast_unsigned()) | OFlags::CLOEXEC;
            match rustix::fs::openat(CWD, &path.0[..], flags, mode(*perm)) {
                Ok(file) => process.files[*slot] = Some(file),
                Err(error) => return Outcome::Failed(errno(error)),
            }
            Outcome::Done
        }
        Op::Close { slot } => {
            Outcome::done(process.files[*slot].take().map(drop).ok_or(Errno::EBADF))
        }
        Op::SetFlags { slot, flags } => Outcome::done(process.file(*slot).and_then(|file| {
            let flags = OFlags::from_bits_retain(flags.bits().cast_unsigned()) | OFlags::NONBLOCK;
            rustix::fs::fcntl_setfl(file, flags).map_err(errno)
        })),
        _ => unreachable!("sorted by run"),
    }
}

fn names(process: &Process, op: &Op) -> Outcome {
    match op {
        Op::Mkdir { path, perm } => done(rustix::fs::mkdirat(CWD, &path.0[..], mode(*perm))),
        Op::Mknod {
            path,
            kind,
            perm,
            rdev,
        } => {
            let kind = FileType::from_raw_mode(mode_bits(*kind, 0));
            done(rustix::fs::mknodat(
                CWD,
                &path.0[..],
                kind,
                mode(*perm),
                *rdev,
            ))
        }
        Op::Symlink { target, path } => {
            done(rustix::fs::symlinkat(&target.0[..], CWD, &path.0[..]))
        }
        Op::Readlink { path } => {
            let target = rustix::fs::readlinkat(CWD, &path.0[..], Vec::new());
            Outcome::data(target.map(std::ffi::CString::into_bytes).map_err(errno))
        }
        Op::Link { from, to, follow } => {
            let flags = if *follow {
                AtFlags::SYMLINK_FOLLOW
            } else {
                AtFlags::empty()
            };
            done(rustix::fs::linkat(CWD, &from.0[..], CWD, &to.0[..], flags))
        }
        Op::LinkOpen { slot, to } => Outcome::done(process.file(*slot).and_then(|file| {
            let name = file.as_raw_fd().to_string();
            let flags = AtFlags::SYMLINK_FOLLOW;
            rustix::fs::linkat(&process.descriptors, name, CWD, &to.0[..], flags).map_err(errno)
        })),
        Op::Unlink { path } => done(rustix::fs::unlinkat(CWD, &path.0[..], AtFlags::empty())),
        Op::Rmdir { path } => done(rustix::fs::unlinkat(CWD, &path.0[..], AtFlags::REMOVEDIR)),
        Op::Rename { from, to, flags } => {
            let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            done(rustix::fs::renameat_with(
                CWD,
                &from.0[..],
                CWD,
                &to.0[..],
                flags,
            ))
        }
        _ => unreachable!("sorted by run"),
    }
}

/// Path and flags of an object that is named, or the open file.
enum Handle<'a> {
    Named(&'a [u8], AtFlags),
    Open(std::os::fd::BorrowedFd<'a>),
}

fn handle<'a>(process: &'a Process, object: &'a Object) -> Result<Handle<'a>> {
    Ok(match object {
        Object::Path(path) => Handle::Named(&path.0, AtFlags::empty()),
        Object::Link(path) => Handle::Named(&path.0, AtFlags::SYMLINK_NOFOLLOW),
        Object::File(slot) => Handle::Open(process.file(*slot)?.as_fd()),
    })
}

fn attributes(process: &Process, op: &Op) -> Outcome {
    if let Op::Access { path, want, follow } = op {
        let mut flags = AtFlags::EACCESS;
        flags.set(AtFlags::SYMLINK_NOFOLLOW, !follow);
        let mut access = rustix::fs::Access::EXISTS;
        access.set(rustix::fs::Access::READ_OK, want.contains(Access::READ));
        access.set(rustix::fs::Access::WRITE_OK, want.contains(Access::WRITE));
        access.set(rustix::fs::Access::EXEC_OK, want.contains(Access::EXEC));
        return done(rustix::fs::accessat(CWD, &path.0[..], access, flags));
    }
    let object = op.object().expect("the others have one object");
    match handle(process, object) {
        Ok(handle) => attributes_of(process, op, object, handle),
        Err(error) => Outcome::Failed(error),
    }
}

fn attributes_of(process: &Process, op: &Op, object: &Object, handle: Handle<'_>) -> Outcome {
    match (op, handle) {
        (Op::Stat { .. }, _) => {
            let view = match object {
                Object::Path(path) => inspect::look(path, true, Default::default()),
                Object::Link(path) => inspect::look(path, false, Default::default()),
                Object::File(slot) => process.file(*slot).and_then(inspect::look_open),
            };
            view.map_or_else(Outcome::Failed, Outcome::Attributes)
        }
        (Op::Chmod { perm, .. }, Handle::Named(path, flags)) => {
            done(rustix::fs::chmodat(CWD, path, mode(*perm), flags))
        }
        (Op::Chmod { perm, .. }, Handle::Open(file)) => done(rustix::fs::fchmod(file, mode(*perm))),
        (Op::Chown { uid, gid, .. }, handle) => {
            let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
            done(match handle {
                Handle::Named(path, flags) => rustix::fs::chownat(CWD, path, uid, gid, flags),
                Handle::Open(file) => rustix::fs::fchown(file, uid, gid),
            })
        }
        (Op::Truncate { len, .. }, Handle::Named(path, _)) => {
            Outcome::done(sys::truncate(path, *len))
        }
        (Op::Truncate { len, .. }, Handle::Open(file)) => Outcome::done(sys::ftruncate(file, *len)),
        (Op::Utimens { atime, mtime, .. }, handle) => {
            let times = Timestamps {
                last_access: timespec(*atime),
                last_modification: timespec(*mtime),
            };
            done(match handle {
                Handle::Named(path, flags) => rustix::fs::utimensat(CWD, path, &times, flags),
                Handle::Open(file) => rustix::fs::futimens(file, &times),
            })
        }
        _ => unreachable!("sorted by run"),
    }
}

fn timespec(when: When) -> Timespec {
    match when {
        When::Omit => Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        When::Now => Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_NOW,
        },
        When::At(secs, nanos) => Timespec {
            tv_sec: secs,
            tv_nsec: nanos.into(),
        },
    }
}

fn transfer(process: &Process, op: &Op) -> Outcome {
    match op {
        Op::Pread { slot, offset, lens } => Outcome::data(process.file(*slot).and_then(|file| {
            let offset = offset.cast_unsigned();
            let mut buffers: Vec<Vec<u8>> = lens.iter().map(|&len| vec![0; len]).collect();
            let got = if let [buffer] = &mut buffers[..] {
                rustix::io::pread(file, &mut buffer[..], offset)
            } else {
                let mut slices: Vec<_> = buffers
                    .iter_mut()
                    .map(|buffer| IoSliceMut::new(buffer))
                    .collect();
                rustix::io::preadv(file, &mut slices, offset)
            };
            let mut bytes = buffers.concat();
            bytes.truncate(got.map_err(errno)?);
            Ok(bytes)
        })),
        Op::Pwrite {
            slot,
            offset,
            lens,
            fill,
        } => Outcome::number(process.file(*slot).and_then(|file| {
            let offset = offset.cast_unsigned();
            let bytes = pattern(*fill, lens.iter().sum());
            let wrote = if lens.len() == 1 {
                rustix::io::pwrite(file, &bytes, offset)
            } else {
                rustix::io::pwritev(file, &slices(&bytes, lens), offset)
            };
            wrote.map(|count| count as u64).map_err(errno)
        })),
        Op::Append { slot, len, fill } => Outcome::number(process.file(*slot).and_then(|file| {
            let bytes = pattern(*fill, *len);
            let (bytes, flags) = ([IoSlice::new(&bytes)], rustix::io::ReadWriteFlags::APPEND);
            let wrote = rustix::io::pwritev2(file, &bytes, 0, flags);
            wrote.map(|count| count as u64).map_err(errno)
        })),
        _ => unreachable!("sorted by run"),
    }
}

/// `bytes` cut into slices of these lengths.
pub(in crate::diff) fn slices<'a>(bytes: &'a [u8], lens: &[usize]) -> Vec<IoSlice<'a>> {
    let mut rest = bytes;
    let cut = lens.iter().map(|&len| {
        let (slice, behind) = rest.split_at(len);
        rest = behind;
        IoSlice::new(slice)
    });
    cut.collect()
}

fn data(process: &Process, op: &Op) -> Outcome {
    match op {
        Op::Seek {
            slot,
            offset,
            whence,
        } => Outcome::number(process.file(*slot).and_then(|file| {
            let offset = offset.cast_unsigned();
            let from = match whence {
                Whence::Data => SeekFrom::Data(offset),
                Whence::Hole => SeekFrom::Hole(offset),
            };
            rustix::fs::seek(file, from).map_err(errno)
        })),
        Op::Fallocate {
            slot,
            mode,
            offset,
            len,
        } => Outcome::done(process.file(*slot).and_then(|file| {
            let mode = FallocateFlags::from_bits_retain(mode.bits().cast_unsigned());
            let (offset, len) = (offset.cast_unsigned(), len.cast_unsigned());
            rustix::fs::fallocate(file, mode, offset, len).map_err(errno)
        })),
        Op::CopyRange {
            from,
            from_off,
            to,
            to_off,
            len,
        } => {
            let copied = process.file(*from).and_then(|from| {
                let to = process.file(*to)?;
                let (mut from_off, mut to_off) = (from_off.cast_unsigned(), to_off.cast_unsigned());
                let offsets = (Some(&mut from_off), Some(&mut to_off));
                let copied = rustix::fs::copy_file_range(from, offsets.0, to, offsets.1, *len);
                copied.map(|count| count as u64).map_err(errno)
            });
            Outcome::number(copied)
        }
        Op::Fsync { slot, data_only } => Outcome::done(process.file(*slot).and_then(|file| {
            let synced = if *data_only {
                rustix::fs::fdatasync(file)
            } else {
                rustix::fs::fsync(file)
            };
            synced.map_err(errno)
        })),
        _ => unreachable!("sorted by run"),
    }
}

fn list(process: &Process, slot: usize, chunk: usize, resume: usize) -> Outcome {
    let listed = process.file(slot).and_then(|dir| {
        let rewound = |cookie| rustix::fs::seek(dir, SeekFrom::Start(cookie)).map_err(errno);
        let read_on = || -> Result<Vec<inspect::Entry>> {
            let mut all = Vec::new();
            loop {
                let run = inspect::read_run(dir, chunk)?;
                if run.is_empty() {
                    return Ok(all);
                }
                all.extend(run);
            }
        };
        rewound(0)?;
        let all = read_on()?;
        if let Some((_, _, cookie)) = all.get(resume) {
            rewound(*cookie)?;
            let rest = read_on()?;
            if rest[..] != all[resume + 1..] {
                return Ok(Outcome::Broken(format!("cookie {cookie} does not resume")));
            }
        }
        let count = all.len();
        let names: BTreeMap<Bytes, u8> = all
            .into_iter()
            .map(|(name, kind, _)| (name, kind))
            .collect();
        if names.len() != count {
            return Ok(Outcome::Broken("a name was listed twice".into()));
        }
        Ok(Outcome::Names(names))
    });
    listed.unwrap_or_else(Outcome::Failed)
}

fn list_from(process: &Process, slot: usize, after: u64, most: usize) -> Outcome {
    let listed = process.file(slot).and_then(|dir| {
        rustix::fs::seek(dir, SeekFrom::Start(after)).map_err(errno)?;
        let mut entries = Vec::new();
        while entries.len() < most {
            let run = inspect::read_run(dir, usize::MAX)?;
            if run.is_empty() {
                break;
            }
            entries.extend(run);
        }
        entries.truncate(most);
        Ok(entries)
    });
    listed.map_or_else(Outcome::Failed, Outcome::Entries)
}

fn xattrs(process: &Process, op: &Op) -> Result<Outcome> {
    let object = op.object().expect("xattr operations have one object");
    let handle = handle(process, object)?;
    let mut buffer = Vec::with_capacity(inspect::XATTR_MAX);
    let spare = rustix::buffer::spare_capacity(&mut buffer);
    match (op, handle) {
        (Op::GetXattr { name, .. }, Handle::Open(file)) => {
            rustix::fs::fgetxattr(file, &name.0[..], spare).map_err(errno)?;
            Ok(Outcome::Data(buffer))
        }
        (Op::GetXattr { name, .. }, Handle::Named(path, flags)) => {
            inspect::get_xattr(&path.into(), flags.is_empty(), name).map(Outcome::Data)
        }
        (Op::ListXattr { .. }, Handle::Open(file)) => {
            rustix::fs::flistxattr(file, spare).map_err(errno)?;
            Ok(Outcome::XattrNames(inspect::split_names(&buffer)))
        }
        (Op::ListXattr { .. }, Handle::Named(path, flags)) => {
            inspect::list_xattrs(&path.into(), flags.is_empty()).map(Outcome::XattrNames)
        }
        (
            Op::SetXattr {
                name, value, how, ..
            },
            handle,
        ) => {
            let how = match how {
                XattrSet::Any => XattrFlags::empty(),
                XattrSet::Create => XattrFlags::CREATE,
                XattrSet::Replace => XattrFlags::REPLACE,
            };
            let (name, value) = (&name.0[..], &value.0[..]);
            Ok(done(match handle {
                Handle::Open(file) => rustix::fs::fsetxattr(file, name, value, how),
                Handle::Named(path, flags) if flags.is_empty() => {
                    rustix::fs::setxattr(path, name, value, how)
                }
                Handle::Named(path, _) => rustix::fs::lsetxattr(path, name, value, how),
            }))
        }
        (Op::RemoveXattr { name, .. }, handle) => {
            let name = &name.0[..];
            Ok(done(match handle {
                Handle::Open(file) => rustix::fs::fremovexattr(file, name),
                Handle::Named(path, flags) if flags.is_empty() => {
                    rustix::fs::removexattr(path, name)
                }
                Handle::Named(path, _) => rustix::fs::lremovexattr(path, name),
            }))
        }
        _ => unreachable!("sorted by run"),
    }
}

fn locks(process: &Process, op: &Op) -> Outcome {
    match op {
        Op::SetLock {
            slot,
            family,
            want,
            start,
            len,
        } => Outcome::done(
            process
                .file(*slot)
                .and_then(|file| sys::set_lock(file.as_fd(), *family, *want, *start, *len)),
        ),
        Op::GetLock {
            slot,
            family,
            want,
            start,
            len,
        } => process
            .file(*slot)
            .and_then(|file| sys::get_lock(file.as_fd(), *family, *want, *start, *len))
            .map_or_else(Outcome::Failed, Outcome::Lock),
        Op::Flock { slot, want } => Outcome::done(process.file(*slot).and_then(|file| {
            use crate::diff::op::LockWant;
            let operation = match want {
                LockWant::Read => FlockOperation::NonBlockingLockShared,
                LockWant::Write => FlockOperation::NonBlockingLockExclusive,
                LockWant::Unlock => FlockOperation::NonBlockingUnlock,
            };
            rustix::fs::flock(file, operation).map_err(errno)
        })),
        _ => unreachable!("sorted by run"),
    }
}

fn whole(process: &Process, op: &Op) -> Outcome {
    match op {
        Op::StatFs { path } => {
            let seen = rustix::fs::statfs(&path.0[..]).map_err(errno);
            Outcome::number(seen.map(|stat| stat.f_namelen.cast_unsigned()))
        }
        Op::SyncFs { slot } => Outcome::done(
            process
                .file(*slot)
                .and_then(|file| rustix::fs::syncfs(file).map_err(errno)),
        ),
        _ => unreachable!("sorted by run"),
    }
}
