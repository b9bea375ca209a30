//! Operations on content, listings and locks, as the core's calls.

use super::{LibraryTarget, Process};
use crate::diff::host::slices;
use crate::diff::op::{Bytes, LockFamily, LockWant, Op};
use crate::diff::outcome::{Outcome, SeenLock};
use crate::rng::pattern;
use holdfast_core::{LockKind, LockOwner, LockRange, LockSpace, OpenFile};
use holdfast_types::{Errno, Result};
use std::collections::BTreeMap;
use std::io::IoSliceMut;

fn offset(offset: i64) -> Result<u64> {
    u64::try_from(offset).map_err(|_| Errno::EINVAL)
}

impl LibraryTarget {
    pub(super) fn data(&self, caller: usize, op: &Op) -> Outcome {
        let process = &self.processes[caller];
        match op {
            Op::List {
                slot,
                chunk,
                resume,
            } => self
                .list(process, *slot, *chunk, *resume)
                .unwrap_or_else(Outcome::Failed),
            Op::ListFrom { slot, after, most } => process
                .file(*slot)
                .and_then(|dir| self.run_from(dir, *after, *most))
                .map_or_else(Outcome::Failed, Outcome::Entries),
            Op::SetLock { .. } | Op::GetLock { .. } | Op::Flock { .. } => {
                self.lock(process, op).unwrap_or_else(Outcome::Failed)
            }
            Op::Pread {
                slot,
                offset: at,
                lens,
            } => {
                let at = process.handle(*slot).and_then(|_| offset(*at));
                Outcome::data(at.and_then(|at| self.read(process, *slot, at, lens)))
            }
            _ => Outcome::number(self.content(process, op)).without_zero(op),
        }
    }

    fn read(&self, process: &Process, slot: usize, at: u64, lens: &[usize]) -> Result<Vec<u8>> {
        let file = process.file(slot)?;
        let mut buffers: Vec<Vec<u8>> = lens.iter().map(|&len| vec![0; len]).collect();
        let got = if let [buffer] = &mut buffers[..] {
            self.fs.read(file, at, buffer)?
        } else {
            let mut slices: Vec<_> = buffers
                .iter_mut()
                .map(|buffer| IoSliceMut::new(buffer))
                .collect();
            // The kernel asks no file system for nothing in several parts.
            if lens.iter().all(|&len| len == 0) && file.flags().readable() {
                return Ok(Vec::new());
            }
            self.fs.read_vectored(file, at, &mut slices)?
        };
        let mut bytes = buffers.concat();
        bytes.truncate(got);
        Ok(bytes)
    }

    fn content(&self, process: &Process, op: &Op) -> Result<u64> {
        let (fs, who) = (&self.fs, &process.who);
        match op {
            Op::Pwrite {
                slot,
                offset: at,
                lens,
                fill,
            } => {
                process.handle(*slot)?;
                let at = offset(*at)?;
                let file = process.file(*slot)?;
                let bytes = pattern(*fill, lens.iter().sum());
                let wrote = if lens.len() == 1 {
                    fs.write(who, file, at, &bytes)
                } else {
                    fs.write_vectored(who, file, at, &slices(&bytes, lens))
                };
                wrote.map(|count| count as u64)
            }
            Op::Append { slot, len, fill } => {
                let file = process.file(*slot)?;
                let bytes = pattern(*fill, *len);
                fs.append(who, file, &bytes).map(|(_, count)| count as u64)
            }
            Op::Seek {
                slot,
                offset: at,
                whence,
            } => {
                let file = process.file(*slot)?;
                let at = u64::try_from(*at).map_err(|_| Errno::ENXIO);
                if file.node().kind() == holdfast_types::FileType::Directory {
                    return Err(Errno::EINVAL);
                }
                fs.seek(file, at?, *whence)
            }
            Op::Fallocate {
                slot,
                mode,
                offset: at,
                len,
            } => {
                let file = process.file(*slot)?;
                let (at, len) = (offset(*at)?, offset(*len)?);
                fs.fallocate(who, file, *mode, at, len).map(|()| 0)
            }
            Op::CopyRange {
                from,
                from_off,
                to,
                to_off,
                len,
            } => {
                let (from, to) = (process.file(*from)?, process.file(*to)?);
                let (from_off, to_off) = (offset(*from_off)?, offset(*to_off)?);
                fs.copy_file_range(who, from, from_off, to, to_off, *len as u64)
            }
            Op::Fsync { slot, data_only } => fs.fsync(process.file(*slot)?, *data_only).map(|()| 0),
            _ => unreachable!("sorted by call"),
        }
    }

    fn list(&self, process: &Process, slot: usize, chunk: usize, resume: usize) -> Result<Outcome> {
        let dir = process.file(slot)?;
        let all = self.list_from(dir, 0, chunk)?;
        if let Some((_, _, cookie)) = all.get(resume) {
            let rest = self.list_from(dir, *cookie, chunk)?;
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
    }

    /// Everything behind a cookie, taken in runs of a few names.
    fn list_from(&self, dir: &OpenFile, after: u64, chunk: usize) -> Result<Vec<(Bytes, u8, u64)>> {
        let most = chunk / 100;
        let (mut all, mut after) = (Vec::new(), after);
        loop {
            let run = self.run_from(dir, after, most)?;
            match run.last() {
                Some((_, _, cookie)) => after = *cookie,
                None => return Ok(all),
            }
            all.extend(run);
        }
    }

    /// At most so many names behind a cookie.
    fn run_from(&self, dir: &OpenFile, after: u64, most: usize) -> Result<Vec<(Bytes, u8, u64)>> {
        let mut run = Vec::new();
        self.fs.read_dir(dir, after, &mut |entry| {
            let taken = run.len() < most;
            if taken {
                let kind = entry.kind.dirent_type();
                run.push((Bytes::from(entry.name), kind, entry.cookie));
            }
            taken
        })?;
        Ok(run)
    }

    fn lock(&self, process: &Process, op: &Op) -> Result<Outcome> {
        let fs = &self.fs;
        let pid = process.who.pid;
        match op {
            Op::Flock { slot, want } => {
                let file = process.file(*slot)?;
                let space = LockSpace::Flock;
                let whole = LockRange::WHOLE;
                let owner = file.owner();
                let taken = fs.set_lock(file.node(), owner, space, kind(*want), whole, pid, None);
                Ok(Outcome::done(taken))
            }
            Op::SetLock {
                slot,
                family,
                want,
                start,
                len,
            } => {
                let file = process.file(*slot)?;
                let range = range(*start, *len)?;
                let flags = file.flags();
                let refused = match want {
                    LockWant::Read => !flags.readable(),
                    LockWant::Write => !flags.writable(),
                    LockWant::Unlock => false,
                };
                if refused {
                    return Err(Errno::EBADF);
                }
                let (owner, space) = owner(process, file, *family);
                let taken = fs.set_lock(file.node(), owner, space, kind(*want), range, pid, None);
                Ok(Outcome::done(taken))
            }
            Op::GetLock {
                slot,
                family,
                want,
                start,
                len,
            } => {
                let file = process.file(*slot)?;
                let kind = kind(*want).ok_or(Errno::EINVAL)?;
                let range = range(*start, *len)?;
                let (owner, space) = owner(process, file, *family);
                let held = fs.get_lock(file.node(), owner, space, kind, range)?;
                Ok(Outcome::Lock(held.map(|held| SeenLock {
                    kind: match held.kind {
                        LockKind::Read => LockWant::Read,
                        LockKind::Write => LockWant::Write,
                    },
                    start: held.range.start.cast_signed(),
                    len: match held.range.end {
                        end if end >= i64::MAX as u64 => 0,
                        end => (end - held.range.start + 1).cast_signed(),
                    },
                    of_process: held.space == LockSpace::Posix,
                })))
            }
            _ => unreachable!("sorted by data"),
        }
    }
}

impl Outcome {
    /// `Done` in place of the number that fallocate(2) and fsync(2) return.
    fn without_zero(self, op: &Op) -> Self {
        match (self, op) {
            (Self::Number(_), Op::Fallocate { .. } | Op::Fsync { .. }) => Self::Done,
            (outcome, _) => outcome,
        }
    }
}

fn kind(want: LockWant) -> Option<LockKind> {
    match want {
        LockWant::Read => Some(LockKind::Read),
        LockWant::Write => Some(LockKind::Write),
        LockWant::Unlock => None,
    }
}

fn owner(process: &Process, file: &OpenFile, family: LockFamily) -> (LockOwner, LockSpace) {
    match family {
        LockFamily::Posix => (process.owner, LockSpace::Posix),
        LockFamily::Ofd => (file.owner(), LockSpace::Ofd),
    }
}

/// fcntl(2)'s start and length as a range.
fn range(start: i64, len: i64) -> Result<LockRange> {
    let (first, last) = match len {
        0 => (start, i64::MAX),
        1.. => (start, start.checked_add(len - 1).ok_or(Errno::EOVERFLOW)?),
        _ => (
            start.checked_add(len).ok_or(Errno::EINVAL)?,
            start.wrapping_sub(1),
        ),
    };
    let end = if last == i64::MAX {
        u64::MAX
    } else {
        offset(last)?
    };
    Ok(LockRange {
        start: offset(first)?,
        end,
    })
}
