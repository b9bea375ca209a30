//! From each request of fixed reply to its operation.

use super::{
    encode::Answer,
    handler::{Handler, context},
    worker::Worker,
};
use crate::{
    operations::Context,
    wire::{Extensions, Header, LockRequest, Request},
};
use holdfast_types::{Errno, Result};

/// The narrow COPY_FILE_RANGE counts in 32 bits: the most that it can report, in whole pages.
const NARROW_COPY_MAX: u64 = 0xffff_f000;

impl Handler {
    pub(super) fn answer(&self, header: &Header, request: Request<'_>) -> Result<Answer> {
        let cx = &context(header, 0, Extensions::default());
        let (ops, ino) = (&self.operations, header.ino);
        match request {
            Request::Lookup { name } => match ops.lookup(cx, ino, name) {
                Err(Errno::ENOENT) if self.validities.remembers_absence() => Ok(Answer::Absent),
                found => found.map(Answer::Entry),
            },
            Request::GetAttr { fh } => ops.getattr(cx, ino, fh).map(Answer::Attr),
            Request::StatX { fh, .. } => ops.getattr(cx, ino, fh).map(Answer::StatX),
            Request::SetAttr(set) => ops.setattr(cx, ino, &set).map(Answer::Attr),
            Request::Open(open) => ops.open(cx, ino, &open).map(Answer::Opened),
            Request::OpenDir(open) => ops.opendir(cx, ino, &open).map(Answer::Opened),
            Request::Write(write) => ops.write(cx, ino, &write).map(Answer::Written),
            Request::Flush { fh, lock_owner } => done(ops.flush(cx, ino, fh, lock_owner)),
            Request::Release(release) => done(ops.release(cx, ino, &release)),
            Request::ReleaseDir(release) => done(ops.releasedir(cx, ino, &release)),
            Request::Symlink { .. }
            | Request::Mknod { .. }
            | Request::Mkdir { .. }
            | Request::Create(_)
            | Request::TmpFile(_) => self.make(header, request),
            Request::Unlink { name } => done(ops.unlink(cx, ino, name)),
            Request::Rmdir { name } => done(ops.rmdir(cx, ino, name)),
            Request::Rename {
                name,
                new_parent,
                new_name,
                flags,
            } => done(ops.rename(cx, ino, name, new_parent, new_name, flags)),
            Request::Link { ino: linked, name } => {
                ops.link(cx, linked, ino, name).map(Answer::Entry)
            }
            Request::StatFs => ops.statfs(cx, ino).map(Answer::StatFs),
            Request::Access { mask } => done(ops.access(cx, ino, mask)),
            Request::GetLk(lock) => ops.getlk(cx, ino, &lock).map(Answer::Lock),
            Request::SetLk(lock) => done(ops.setlk(cx, ino, &lock, None)),
            Request::Destroy => {
                ops.unmounting();
                Ok(Answer::Done)
            }
            request => self.data(header, request),
        }
    }

    /// Requests that make an inode: they carry umask and extensions.
    fn make(&self, header: &Header, request: Request<'_>) -> Result<Answer> {
        let (ops, ino) = (&self.operations, header.ino);
        match request {
            Request::Symlink {
                name,
                target,
                extensions,
            } => {
                let cx = context(header, 0, extensions);
                ops.symlink(&cx, ino, name, target).map(Answer::Entry)
            }
            Request::Mknod {
                name,
                mode,
                rdev,
                umask,
                extensions,
            } => {
                let cx = context(header, umask, extensions);
                ops.mknod(&cx, ino, name, mode, rdev).map(Answer::Entry)
            }
            Request::Mkdir {
                name,
                mode,
                umask,
                extensions,
            } => {
                let cx = context(header, umask, extensions);
                ops.mkdir(&cx, ino, name, mode).map(Answer::Entry)
            }
            Request::Create(create) => {
                let cx = context(header, create.umask, create.extensions);
                ops.create(&cx, ino, &create)
                    .map(|(attr, opened)| Answer::Created(attr, opened))
            }
            Request::TmpFile(create) => {
                let cx = context(header, create.umask, create.extensions);
                ops.tmpfile(&cx, ino, &create)
                    .map(|(attr, opened)| Answer::Created(attr, opened))
            }
            _ => Err(Errno::ENOSYS),
        }
    }

    /// Requests about an open file's content, extended attributes, durability.
    fn data(&self, header: &Header, request: Request<'_>) -> Result<Answer> {
        let cx = &context(header, 0, Extensions::default());
        let (ops, ino) = (&self.operations, header.ino);
        match request {
            Request::Fsync { fh, data_only } => done(ops.fsync(cx, ino, fh, data_only)),
            Request::FsyncDir { fh, data_only } => done(ops.fsyncdir(cx, ino, fh, data_only)),
            Request::SyncFs => done(ops.syncfs(cx)),
            Request::SetXattr {
                name,
                value,
                flags,
                kill_sgid,
            } => done(ops.setxattr(cx, ino, name, value, flags, kill_sgid)),
            Request::RemoveXattr { name } => done(ops.removexattr(cx, ino, name)),
            Request::Fallocate {
                fh,
                offset,
                length,
                mode,
            } => done(ops.fallocate(cx, ino, fh, mode, offset, length)),
            Request::Lseek { fh, offset, whence } => {
                ops.lseek(cx, ino, fh, offset, whence).map(Answer::Offset)
            }
            Request::CopyFileRange(mut copy) => {
                if !copy.wide {
                    copy.len = copy.len.min(NARROW_COPY_MAX);
                }
                let bytes = ops.copy_file_range(cx, ino, &copy)?;
                Ok(Answer::Copied {
                    bytes,
                    wide: copy.wide,
                })
            }
            // BMAP is for block devices, POLL for what is not always ready; the rest is unknown.
            _ => Err(Errno::ENOSYS),
        }
    }

    /// Takes the lock, and waits for it where somebody else can bring in the unlock meanwhile.
    pub(super) fn wait_for_lock(
        &self,
        cx: &Context<'_>,
        header: &Header,
        lock: &LockRequest,
        worker: &mut Worker,
    ) -> Result<Answer> {
        match self.operations.setlk(cx, header.ino, lock, None) {
            Err(Errno::EAGAIN) => {}
            taken => return done(taken),
        }
        let _counted = worker.before_request_wait()?;
        let waiting = self.interrupts.enter(header.unique);
        let taken = self
            .operations
            .setlk(cx, header.ino, lock, Some(&waiting.interrupt));
        // No signal of the caller's own ended this wait.
        let over = taken == Err(Errno::EINTR) && self.revocation.is_done();
        done(if over { Err(Errno::EIO) } else { taken })
    }
}

fn done(result: Result<()>) -> Result<Answer> {
    result.map(|()| Answer::Done)
}
