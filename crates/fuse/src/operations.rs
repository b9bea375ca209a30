//! What a file system serves: the trait between the session and an implementation.

use crate::{
    interrupt::Interrupt,
    session::{BackingFiles, Negotiated},
    wire::{
        CopyRequest, CreateRequest, DirPlusSink, DirSink, Extensions, LockRequest, LockType,
        OpenReply, OpenRequest, ReadRequest, ReleaseRequest, Request, SetAttrRequest, WriteRequest,
    },
};
use holdfast_types::{Attr, Errno, Ino, Result, StatFs};
use std::time::Instant;

/// On whose behalf a request runs.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Names the request.
    pub unique: u64,
    /// The caller's user id. On a connection that allows id-mapped mounts the kernel tells it
    /// only where something is made, and `u32::MAX` elsewhere.
    pub uid: u32,
    /// The caller's group id, with the same reserve.
    pub gid: u32,
    /// The caller's process.
    pub pid: u32,
    /// The caller's umask where something is made, else 0.
    pub umask: u16,
    /// What a creation carried besides.
    pub extensions: Extensions<'a>,
}

/// An opened file or directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opened {
    /// Names it in later requests.
    pub fh: u64,
    /// What it asks of the kernel.
    pub flags: OpenReply,
    /// The [registered](BackingFiles) file that the kernel reads and writes by itself
    /// ([`OpenReply::PASSTHROUGH`]).
    pub backing: Option<i32>,
}

/// A lock that is held.
#[derive(Clone, Copy, Debug)]
pub struct FoundLock {
    /// First byte.
    pub start: u64,
    /// Last byte.
    pub end: u64,
    /// Read or write; [`LockType::Unlock`] if nothing is in the way.
    pub kind: LockType,
    /// Who holds it.
    pub pid: u32,
}

/// A file system behind a FUSE session. Every method has a default, mostly `ENOSYS`, which
/// tells the kernel never to ask again.
///
/// Methods run on the session's threads, several at once; a method may wait: others of its
/// queue are served by another thread meanwhile. A panic answers `EIO` and is logged.
///
/// Attributes answered by [`lookup`](Self::lookup), [`mknod`](Self::mknod),
/// [`mkdir`](Self::mkdir), [`symlink`](Self::symlink), [`link`](Self::link),
/// [`create`](Self::create), [`tmpfile`](Self::tmpfile) and taken by a [`DirPlusSink`] each give
/// the kernel one reference to that inode, which comes back by [`forget`](Self::forget). The
/// inode number in them is the node id.
#[expect(unused_variables, reason = "defaults answer without looking")]
pub trait Operations: Send + Sync + 'static {
    /// The session is about to begin.
    ///
    /// # Errors
    /// An error ends the mount.
    fn init(&self, negotiated: &Negotiated) -> Result<()> {
        Ok(())
    }

    /// The kernel reads and writes files by itself that are registered here, if OPEN and its like say so. Called before the
    /// first request where the configuration wants it and the kernel can.
    fn pass_through(&self, files: BackingFiles) {}

    /// Is an inode written by the kernel itself, so that its attributes are not to be believed a moment later?
    fn is_passed_through(&self, ino: Ino) -> bool {
        false
    }

    /// The session is over; no other call comes after.
    fn destroy(&self) {}

    /// The kernel unmounts, and umount(2) returns when this does: what is to be durable and closed then must be. Comes only
    /// for a mount as `fuseblk`, before [`destroy`](Self::destroy); only forgets may still come after it.
    fn unmounting(&self) {}

    /// Takes the file system away from all who use it: every operation but those that give
    /// something back (`forget`, `flush`, `release`, `releasedir`) fails from now on. The session
    /// asks for none any more, and empties the kernel's caches.
    ///
    /// `cx`: the request by which somebody asks for it; none if this process does.
    ///
    /// # Errors
    /// `EPERM` when the caller may not; `ENOTTY` when it cannot be done. After any other error it
    /// is done even so.
    fn revoke(&self, cx: Option<&Context<'_>>) -> Result<()> {
        Err(Errno::ENOTTY)
    }

    /// Answers an ioctl(2) with bytes for its argument.
    ///
    /// # Errors
    /// `ENOTTY`: there is no such command here.
    fn ioctl(&self, cx: &Context<'_>, ino: Ino, command: u32, input: &[u8]) -> Result<Vec<u8>> {
        Err(Errno::ENOTTY)
    }

    /// Shows every inode of which the kernel may hold a reference, and perhaps others.
    fn known(&self, visit: &mut dyn FnMut(Ino)) {}

    /// May the kernel hold a reference of this inode, or is a reply under way that gives it one? Never `false` if so.
    fn is_known(&self, ino: Ino) -> bool {
        false
    }

    /// How many files and directories are open.
    fn open_files(&self) -> u64 {
        0
    }

    /// Does this request surely last (it waits for a device, or works for long)? Then another thread
    /// is made ready at once, and this one leaves the processor of the caller for the time. What is not
    /// announced may wait all the same.
    fn takes_long(&self, ino: Ino, request: &Request<'_>) -> bool {
        false
    }

    /// A change was refused because the file system is read-only (`EROFS`), though the kernel
    /// passed it on: it does not while it has the mount read-only. `true`: the file system takes
    /// changes by now, and the request is served again.
    fn became_writable(&self) -> bool {
        false
    }

    /// Is the kernel told when this inode changes, or a name of this directory, so that what was read of it since then holds
    /// longer ([`Config::heard_timeout`](crate::Config::heard_timeout))?
    fn is_heard(&self, ino: Ino, since: Instant) -> bool {
        false
    }

    /// The attributes of the name's inode.
    ///
    /// # Errors
    /// `ENOENT` is remembered by the kernel if the configuration says so.
    fn lookup(&self, cx: &Context<'_>, parent: Ino, name: &[u8]) -> Result<Attr> {
        Err(Errno::ENOSYS)
    }

    /// The kernel gives `count` references back.
    fn forget(&self, ino: Ino, count: u64) {}

    /// An inode's attributes.
    fn getattr(&self, cx: &Context<'_>, ino: Ino, fh: Option<u64>) -> Result<Attr> {
        Err(Errno::ENOSYS)
    }

    /// Changes attributes; answers the new ones.
    fn setattr(&self, cx: &Context<'_>, ino: Ino, request: &SetAttrRequest) -> Result<Attr> {
        Err(Errno::ENOSYS)
    }

    /// Writes a symbolic link's target to `out`; gives its length.
    fn readlink(&self, cx: &Context<'_>, ino: Ino, out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Makes a symbolic link.
    fn symlink(&self, cx: &Context<'_>, parent: Ino, name: &[u8], target: &[u8]) -> Result<Attr> {
        Err(Errno::ENOSYS)
    }

    /// Makes a file, device, fifo or socket; `rdev` as `makedev(3)` packs it.
    fn mknod(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        name: &[u8],
        mode: u32,
        rdev: u64,
    ) -> Result<Attr> {
        Err(Errno::ENOSYS)
    }

    /// Makes a directory.
    fn mkdir(&self, cx: &Context<'_>, parent: Ino, name: &[u8], mode: u32) -> Result<Attr> {
        Err(Errno::ENOSYS)
    }

    /// Removes a name of something that is not a directory.
    fn unlink(&self, cx: &Context<'_>, parent: Ino, name: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Removes an empty directory.
    fn rmdir(&self, cx: &Context<'_>, parent: Ino, name: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Renames; `flags` of renameat2(2).
    fn rename(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        flags: u32,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Gives `ino` another name.
    fn link(&self, cx: &Context<'_>, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        Err(Errno::ENOSYS)
    }

    /// Opens a file. `ENOSYS` means that files need no opening (if the kernel can do so).
    fn open(&self, cx: &Context<'_>, ino: Ino, request: &OpenRequest) -> Result<Opened> {
        Err(Errno::ENOSYS)
    }

    /// Makes (or finds) and opens a file.
    fn create(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        request: &CreateRequest<'_>,
    ) -> Result<(Attr, Opened)> {
        Err(Errno::ENOSYS)
    }

    /// Makes and opens a file without a name.
    fn tmpfile(
        &self,
        cx: &Context<'_>,
        parent: Ino,
        request: &CreateRequest<'_>,
    ) -> Result<(Attr, Opened)> {
        Err(Errno::ENOSYS)
    }

    /// Reads into `out`, which is as long as was asked for; gives the bytes read, fewer only at
    /// the end of the file.
    fn read(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        out: &mut [u8],
    ) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Writes; gives the bytes written.
    fn write(&self, cx: &Context<'_>, ino: Ino, request: &WriteRequest<'_>) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// A descriptor of the file was closed.
    fn flush(&self, cx: &Context<'_>, ino: Ino, fh: u64, lock_owner: u64) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The open file is gone.
    fn release(&self, cx: &Context<'_>, ino: Ino, request: &ReleaseRequest) -> Result<()> {
        Ok(())
    }

    /// Makes a file durable.
    fn fsync(&self, cx: &Context<'_>, ino: Ino, fh: u64, data_only: bool) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Opens a directory. `ENOSYS` means that directories need no opening.
    fn opendir(&self, cx: &Context<'_>, ino: Ino, request: &OpenRequest) -> Result<Opened> {
        Err(Errno::ENOSYS)
    }

    /// Lists entries behind the cookie `request.offset`.
    fn readdir(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Lists entries with attributes behind the cookie `request.offset`.
    fn readdirplus(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirPlusSink<'_>,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The open directory is gone.
    fn releasedir(&self, cx: &Context<'_>, ino: Ino, request: &ReleaseRequest) -> Result<()> {
        Ok(())
    }

    /// Makes a directory durable.
    fn fsyncdir(&self, cx: &Context<'_>, ino: Ino, fh: u64, data_only: bool) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Makes everything durable.
    fn syncfs(&self, cx: &Context<'_>) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Space and limits.
    fn statfs(&self, cx: &Context<'_>, ino: Ino) -> Result<StatFs> {
        Err(Errno::ENOSYS)
    }

    /// Sets an extended attribute; `flags` of setxattr(2).
    fn setxattr(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        flags: u32,
        kill_sgid: bool,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// An extended attribute's value: tells its length, and copies it to `out` if it fits. An
    /// empty `out` asks for the length only.
    fn getxattr(&self, cx: &Context<'_>, ino: Ino, name: &[u8], out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// The names of extended attributes, each with its NUL; as [`getxattr`](Self::getxattr).
    fn listxattr(&self, cx: &Context<'_>, ino: Ino, out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Removes an extended attribute.
    fn removexattr(&self, cx: &Context<'_>, ino: Ino, name: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// access(2): asked only on mounts without `default_permissions`.
    fn access(&self, cx: &Context<'_>, ino: Ino, mask: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The first lock in the way of this one.
    fn getlk(&self, cx: &Context<'_>, ino: Ino, request: &LockRequest) -> Result<FoundLock> {
        Err(Errno::ENOSYS)
    }

    /// Sets or clears a lock; with `wait`, waits for it until told by the interrupt.
    ///
    /// # Errors
    /// `EAGAIN` if it is held and there is nothing to wait by, `EINTR` when interrupted.
    fn setlk(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &LockRequest,
        wait: Option<&Interrupt>,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// fallocate(2).
    fn fallocate(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        fh: u64,
        mode: u32,
        offset: u64,
        length: u64,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// lseek(2) with `SEEK_DATA` or `SEEK_HOLE`.
    fn lseek(&self, cx: &Context<'_>, ino: Ino, fh: u64, offset: u64, whence: u32) -> Result<u64> {
        Err(Errno::ENOSYS)
    }

    /// copy_file_range(2); gives the bytes copied.
    fn copy_file_range(&self, cx: &Context<'_>, ino: Ino, request: &CopyRequest) -> Result<u64> {
        Err(Errno::ENOSYS)
    }
}
