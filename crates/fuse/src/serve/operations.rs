//! The trait, operation by operation.

use super::{CoreOperations, INODES_XATTR, caller::caller, prefetch::PREFETCH};
use crate::{
    BackingFiles, Context, FoundLock, Interrupt, Negotiated, Opened, Operations,
    wire::{
        CopyRequest, CreateRequest, DirPlusSink, DirSink, LockRequest, OpenRequest, ReadRequest,
        ReleaseRequest, Request, SetAttrRequest, WriteRequest,
    },
};
use holdfast_core::types::{Access, Attr, Errno, Ino, Result, StatFs};

/// Bytes of copying or allocating above which a request leaves its caller's processor.
const LONG_BYTES: u64 = 4 << 20;

impl Operations for CoreOperations {
    fn init(&self, negotiated: &Negotiated) -> Result<()> {
        self.negotiated(negotiated);
        Ok(())
    }

    fn pass_through(&self, files: BackingFiles) {
        self.backings.can_register(files);
    }

    fn is_passed_through(&self, ino: Ino) -> bool {
        self.backings.is_written(ino)
    }

    fn destroy(&self) {
        self.handles
            .each(|handle| self.backings.released(&self.fs, &handle.file));
        self.handles.drain();
        // A kernel forgets nothing when its connection ends.
        self.fs.forget_all();
        self.fs.set_observer(None);
    }

    fn is_heard(&self, ino: Ino) -> bool {
        self.fs.is_heard(ino)
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

    fn open_files(&self) -> u64 {
        self.fs.stats().open_files
    }

    fn takes_long(&self, _: Ino, request: &Request<'_>) -> bool {
        match request {
            Request::CopyFileRange(copy) => copy.len > LONG_BYTES,
            Request::Fallocate { length, .. } => *length > LONG_BYTES,
            Request::Ioctl { .. } | Request::Destroy => true,
            // Counting inodes takes as long as there are many.
            Request::GetXattr { name, .. } => *name == INODES_XATTR.as_bytes(),
            Request::Fsync { .. } | Request::FsyncDir { .. } | Request::SyncFs => self.blocks,
            Request::Write(write) => self.blocks && write.flags & libc::O_DSYNC != 0,
            _ => false,
        }
    }

    fn lookup(&self, cx: &Context<'_>, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.find(cx, parent, name)
    }

    fn forget(&self, ino: Ino, count: u64) {
        self.fs.forget(ino, count);
    }

    fn getattr(&self, _: &Context<'_>, ino: Ino, _: Option<u64>) -> Result<Attr> {
        self.fs.attributes(&self.fs.node(ino)?)
    }

    fn setattr(&self, cx: &Context<'_>, ino: Ino, request: &SetAttrRequest) -> Result<Attr> {
        self.change_attributes(cx, ino, request)
    }

    fn readlink(&self, _: &Context<'_>, ino: Ino, out: &mut [u8]) -> Result<usize> {
        self.target(ino, out)
    }

    fn symlink(&self, cx: &Context<'_>, parent: Ino, name: &[u8], target: &[u8]) -> Result<Attr> {
        self.make_symlink(cx, parent, name, target)
    }

    fn mknod(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        name: &[u8],
        mode: u32,
        rdev: u64,
    ) -> Result<Attr> {
        self.make_node(cx, parent, name, mode, rdev)
    }

    fn mkdir(&self, cx: &Context<'_>, parent: Ino, name: &[u8], mode: u32) -> Result<Attr> {
        self.make_directory(cx, parent, name, mode)
    }

    fn unlink(&self, cx: &Context<'_>, parent: Ino, name: &[u8]) -> Result<()> {
        self.fs.unlink(&caller(cx), &self.fs.node(parent)?, name)
    }

    fn rmdir(&self, cx: &Context<'_>, parent: Ino, name: &[u8]) -> Result<()> {
        self.fs.rmdir(&caller(cx), &self.fs.node(parent)?, name)
    }

    fn rename(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        flags: u32,
    ) -> Result<()> {
        self.move_name(cx, (parent, name), (new_parent, new_name), flags)
    }

    fn link(&self, cx: &Context<'_>, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.make_link(cx, ino, parent, name)
    }

    fn open(&self, cx: &Context<'_>, ino: Ino, request: &OpenRequest) -> Result<Opened> {
        self.open_file(cx, ino, request)
    }

    fn create(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        request: &CreateRequest<'_>,
    ) -> Result<(Attr, Opened)> {
        if self.no_open {
            // The kernel makes files by MKNOD from now on.
            return Err(Errno::ENOSYS);
        }
        self.create_file(cx, parent, request)
    }

    fn tmpfile(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        request: &CreateRequest<'_>,
    ) -> Result<(Attr, Opened)> {
        self.create_unnamed(cx, parent, request)
    }

    fn read(
        &self,
        _: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        out: &mut [u8],
    ) -> Result<usize> {
        self.read_file(ino, request, out)
    }

    fn write(&self, cx: &Context<'_>, ino: Ino, request: &WriteRequest<'_>) -> Result<usize> {
        self.write_file(cx, ino, request)
    }

    fn flush(&self, _: &Context<'_>, ino: Ino, fh: u64, lock_owner: u64) -> Result<()> {
        if self.no_open {
            return Err(Errno::ENOSYS);
        }
        self.release_record_locks(ino, fh, lock_owner)?;
        self.flush_file(fh)
    }

    fn release(&self, _: &Context<'_>, _: Ino, request: &ReleaseRequest) -> Result<()> {
        self.close(request)
    }

    fn fsync(&self, _: &Context<'_>, ino: Ino, fh: u64, data_only: bool) -> Result<()> {
        self.sync_file(ino, fh, data_only)
    }

    fn opendir(&self, cx: &Context<'_>, ino: Ino, request: &OpenRequest) -> Result<Opened> {
        self.open_directory(cx, ino, request)
    }

    fn readdir(
        &self,
        _: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        self.list(ino, request, sink)
    }

    fn readdirplus(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirPlusSink<'_>,
    ) -> Result<()> {
        self.list_plus(cx, ino, request, sink)
    }

    fn releasedir(&self, _: &Context<'_>, _: Ino, request: &ReleaseRequest) -> Result<()> {
        self.close(request)
    }

    fn fsyncdir(&self, _: &Context<'_>, ino: Ino, fh: u64, data_only: bool) -> Result<()> {
        self.sync_file(ino, fh, data_only)
    }

    fn syncfs(&self, _: &Context<'_>) -> Result<()> {
        self.fs.sync()
    }

    fn statfs(&self, _: &Context<'_>, _: Ino) -> Result<StatFs> {
        self.fs.statfs()
    }

    fn setxattr(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        flags: u32,
        kill_sgid: bool,
    ) -> Result<()> {
        self.with_xattrs()?;
        self.set_xattr(cx, ino, name, value, flags, kill_sgid)
    }

    fn getxattr(&self, cx: &Context<'_>, ino: Ino, name: &[u8], out: &mut [u8]) -> Result<usize> {
        self.with_xattrs()?;
        self.read_xattr(cx, ino, name, out)
    }

    fn listxattr(&self, cx: &Context<'_>, ino: Ino, out: &mut [u8]) -> Result<usize> {
        self.with_xattrs()?;
        self.read_xattr_names(cx, ino, out)
    }

    fn removexattr(&self, cx: &Context<'_>, ino: Ino, name: &[u8]) -> Result<()> {
        self.with_xattrs()?;
        self.remove_xattr(cx, ino, name)
    }

    fn access(&self, cx: &Context<'_>, ino: Ino, mask: u32) -> Result<()> {
        let want = Access::from_bits_truncate(mask as u8);
        self.fs.access(&caller(cx), &self.fs.node(ino)?, want)
    }

    fn getlk(&self, _: &Context<'_>, ino: Ino, request: &LockRequest) -> Result<FoundLock> {
        self.find_lock(ino, request)
    }

    fn setlk(
        &self,
        _: &Context<'_>,
        ino: Ino,
        request: &LockRequest,
        wait: Option<&Interrupt>,
    ) -> Result<()> {
        self.take_lock(ino, request, wait)
    }

    fn fallocate(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        fh: u64,
        mode: u32,
        offset: u64,
        length: u64,
    ) -> Result<()> {
        self.allocate(cx, ino, fh, mode, (offset, length))
    }

    fn lseek(&self, _: &Context<'_>, ino: Ino, fh: u64, offset: u64, whence: u32) -> Result<u64> {
        self.seek(ino, fh, offset, whence)
    }

    fn copy_file_range(&self, cx: &Context<'_>, ino: Ino, request: &CopyRequest) -> Result<u64> {
        self.copy_range(cx, ino, request)
    }
}
