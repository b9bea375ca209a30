//! [`Operations`] of the core: each request to its function.

use super::{CoreOperations, INODES_XATTR, caller::caller, names::permissions, prefetch::PREFETCH};
use crate::{
    Answer, BackingFiles, Cancel, Context, Negotiated, Operations,
    wire::{DirSink, LockRequest, ReadRequest, Request},
};
use holdfast_core::types::{Access, Attr, Errno, Ino, Result};
use std::time::{Duration, Instant};

/// A request that copies or allocates more leaves its caller's processor.
const LONG_BYTES: u64 = 4 << 20;

impl Operations for CoreOperations {
    fn init(&self, negotiated: &Negotiated) -> Result<()> {
        // The second of two calls differs only in the transport.
        let _ = self.negotiated.set(*negotiated);
        Ok(())
    }

    fn pass_through(&self, files: BackingFiles) {
        self.backings.can_register(files);
    }

    fn is_passed_through(&self, ino: Ino) -> bool {
        self.backings.is_written(ino)
    }

    fn destroy(&self) {
        if let Some(revalidator) = &self.revalidator {
            revalidator.end();
        }
        self.handles
            .each(|handle| self.backings.released(&self.fs, &handle.file));
        self.handles.drain();
        // The kernel sends no FORGET when its connection ends.
        self.fs.forget_all();
        self.fs.set_observer(None);
    }

    fn notified_for(&self, ino: Ino, since: Instant) -> Option<Duration> {
        self.fs.notified_for(ino, since)
    }

    fn unmounting(&self) {
        self.destroy();
        let control = self.control.read().clone();
        if let Some(control) = control {
            control.unmounting();
        }
    }

    fn revoke(&self, cx: Option<&Context<'_>>) -> Result<()> {
        self.take_away(cx)
    }

    fn ioctl(&self, cx: &Context<'_>, ino: Ino, command: u32, input: &[u8]) -> Result<Vec<u8>> {
        if command == PREFETCH {
            return self.prefetch(cx, ino, input);
        }
        match self.flags_ioctl(cx, ino, command, input) {
            Some(answer) => answer,
            None => self.control(cx, ino, command, input),
        }
    }

    fn known(&self, visit: &mut dyn FnMut(Ino)) {
        self.each_known(visit);
    }

    fn is_known(&self, ino: Ino) -> bool {
        self.fs.is_known_by_number(ino)
    }

    fn open_files(&self) -> u64 {
        self.fs.stats().open_files
    }

    fn became_writable(&self) -> bool {
        let control = self.control.read().clone();
        control.is_some_and(|control| control.became_writable())
    }

    fn takes_long(&self, _: Ino, request: &Request<'_>) -> bool {
        match request {
            Request::CopyFileRange(copy) => copy.len > LONG_BYTES,
            Request::Fallocate { length, .. } => *length > LONG_BYTES,
            Request::Ioctl { .. } | Request::Destroy => true,
            // It scans all inodes.
            Request::GetXattr { name, .. } => *name == INODES_XATTR.as_bytes(),
            Request::Fsync { .. } | Request::SyncFs => self.blocks,
            Request::Write(write) => self.blocks && write.flags & libc::O_DSYNC != 0,
            _ => false,
        }
    }

    fn forget(&self, ino: Ino, count: u64) {
        self.fs.forget(ino, count);
    }

    fn answer(&self, cx: &Context<'_>, ino: Ino, request: Request<'_>) -> Result<Answer> {
        hop!();
        match request {
            Request::Lookup { name } => self.look_up(cx, ino, name).map(Answer::Entry),
            Request::GetAttr => self.attributes(ino).map(Answer::Attr),
            Request::StatX => self.attributes(ino).map(Answer::StatX),
            Request::SetAttr(set) => self.change_attributes(cx, ino, &set).map(Answer::Attr),
            Request::StatFs => self.fs.statfs().map(Answer::StatFs),
            Request::Access { mask } => {
                let want = Access::from_bits_truncate(mask as u8);
                done(self.fs.access(&caller(cx), &self.fs.node(ino)?, want))
            }
            Request::SetXattr(set) => {
                self.with_xattrs()?;
                done(self.set_xattr(cx, ino, &set))
            }
            Request::RemoveXattr { name } => {
                self.with_xattrs()?;
                done(self.remove_xattr(cx, ino, name))
            }
            Request::GetLk(lock) => self.find_lock(ino, &lock).map(Answer::Lock),
            Request::SyncFs => done(self.fs.sync()),
            request => self.answer_names(cx, ino, request),
        }
    }

    fn read(&self, ino: Ino, request: &ReadRequest, out: &mut [u8]) -> Result<usize> {
        self.read_file(ino, request, out)
    }

    fn readdir(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        if sink.takes_attributes() {
            self.list_plus(cx, ino, request, sink)?;
        } else {
            self.with_listing(ino, request, |listing| {
                self.fs.read_dir(listing, request.offset, &mut |entry| {
                    sink.push(entry.name, entry.ino, entry.kind, entry.cookie)
                })
            })?;
        }
        self.listed(ino, request, sink.len() == 0);
        Ok(())
    }

    fn readlink(&self, ino: Ino, out: &mut [u8]) -> Result<usize> {
        let target = self.fs.readlink(&self.fs.node(ino)?)?;
        let out = out.get_mut(..target.len()).ok_or(Errno::ENAMETOOLONG)?;
        out.copy_from_slice(&target);
        Ok(target.len())
    }

    fn getxattr(&self, cx: &Context<'_>, ino: Ino, name: &[u8], out: &mut [u8]) -> Result<usize> {
        self.with_xattrs()?;
        self.read_xattr(cx, ino, name, out)
    }

    fn listxattr(&self, cx: &Context<'_>, ino: Ino, out: &mut [u8]) -> Result<usize> {
        self.with_xattrs()?;
        self.read_xattr_names(cx, ino, out)
    }

    fn setlk(&self, ino: Ino, request: &LockRequest, wait: Option<&Cancel>) -> Result<()> {
        self.take_lock(ino, request, wait)
    }
}

impl CoreOperations {
    /// Requests that look up or change names.
    fn answer_names(&self, cx: &Context<'_>, ino: Ino, request: Request<'_>) -> Result<Answer> {
        hop!();
        match request {
            Request::Symlink { name, target, .. } => {
                let dir = self.fs.node(ino)?;
                self.made(ino, self.fs.symlink(&caller(cx), &dir, name, target))
            }
            Request::Mkdir { name, mode, .. } => {
                let dir = self.fs.node(ino)?;
                let perm = permissions(mode);
                self.made(ino, self.fs.mkdir(&caller(cx), &dir, name, perm))
            }
            Request::Mknod {
                name, mode, rdev, ..
            } => self.make_node(cx, ino, name, mode, rdev),
            Request::Link { ino: linked, name } => {
                let (node, dir) = (self.fs.node(linked)?, self.fs.node(ino)?);
                let linked = self.fs.link(&caller(cx), &node, &dir, name);
                self.made(ino, linked.map(|()| node))
            }
            Request::Unlink { name } => {
                self.fs.unlink(&caller(cx), &self.fs.node(ino)?, name)?;
                self.names_changed(ino);
                Ok(Answer::Done)
            }
            Request::Rmdir { name } => {
                self.fs.rmdir(&caller(cx), &self.fs.node(ino)?, name)?;
                self.names_changed(ino);
                Ok(Answer::Done)
            }
            Request::Rename {
                name,
                new_parent,
                new_name,
                flags,
            } => done(self.move_name(cx, (ino, name), (new_parent, new_name), flags)),
            request => self.answer_files(cx, ino, request),
        }
    }

    /// Requests about open files.
    fn answer_files(&self, cx: &Context<'_>, ino: Ino, request: Request<'_>) -> Result<Answer> {
        hop!();
        match request {
            // The kernel uses files without OPEN, and creates them by MKNOD, from now on.
            Request::Open(_) | Request::Create(_) | Request::Flush { .. }
                if self.config.no_open =>
            {
                Err(Errno::ENOSYS)
            }
            Request::Open(open) => self.open_file(cx, ino, &open).map(Answer::Opened),
            Request::OpenDir(open) => self.open_directory(cx, ino, &open).map(Answer::Opened),
            Request::Create(create) => self.create_file(cx, ino, &create),
            Request::TmpFile(create) => self.create_unnamed(cx, ino, &create),
            Request::Write(write) => self.write_file(cx, ino, &write).map(Answer::Written),
            Request::Flush { fh, lock_owner } => {
                self.release_record_locks(ino, fh, lock_owner)?;
                done(self.flush_file(fh))
            }
            Request::Release(release) => done(self.close(&release)),
            Request::Fsync { fh, data_only } => {
                done(self.with_file(ino, fh, |file| self.fs.fsync(file, data_only)))
            }
            Request::Fallocate {
                fh,
                offset,
                length,
                mode,
            } => done(self.allocate(cx, ino, fh, mode, (offset, length))),
            Request::Lseek { fh, offset, whence } => {
                self.seek(ino, fh, offset, whence).map(Answer::Offset)
            }
            Request::CopyFileRange(copy) => {
                let bytes = self.copy_range(cx, ino, &copy)?;
                let wide = copy.wide;
                Ok(Answer::Copied { bytes, wide })
            }
            // BMAP is for block devices, POLL for files that are not always ready.
            _ => Err(Errno::ENOSYS),
        }
    }

    fn attributes(&self, ino: Ino) -> Result<Attr> {
        self.fs.attributes(&self.fs.node(ino)?)
    }
}

fn done(result: Result<()>) -> Result<Answer> {
    result.map(|()| Answer::Done)
}
