//! The trait between the session and a file system.

use crate::{
    session::{BackingFiles, Negotiated},
    wire::{DirSink, Extensions, LockRequest, LockType, OpenReply, ReadRequest, Request},
};
use holdfast_core::Cancel;
use holdfast_types::{Attr, Errno, Ino, Result, StatFs};
use std::time::{Duration, Instant};

/// The caller of a request.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// User id. On a connection that allows id-mapped mounts the kernel sends it only with
    /// creations, else `u32::MAX`.
    pub uid: u32,
    /// Group id, with the same restriction.
    pub gid: u32,
    /// Process id.
    pub pid: u32,
    /// Umask of a creation, else 0.
    pub umask: u16,
    /// Extensions of a creation.
    pub extensions: Extensions<'a>,
}

/// An opened file or directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opened {
    /// Identifies it in later requests.
    pub fh: u64,
    /// Flags for the kernel.
    pub flags: OpenReply,
    /// The [registered](BackingFiles) file that the kernel reads and writes itself
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
    /// The process that holds it.
    pub pid: u32,
}

/// What an operation answered. It borrows nothing from the request.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// Attributes of a name's inode, with a reference for the kernel.
    Entry(Attr),
    /// There is no such name, and the kernel may cache that.
    Negative,
    /// Attributes.
    Attr(Attr),
    /// Attributes, statx(2) form.
    StatX(Attr),
    /// An open file or directory.
    Opened(Opened),
    /// A new or found file with a reference for the kernel, and open.
    Created(Attr, Opened),
    /// Bytes written.
    Written(usize),
    /// Bytes copied.
    Copied {
        /// How many.
        bytes: u64,
        /// The reply has 64 bits.
        wide: bool,
    },
    /// Space and limits.
    StatFs(StatFs),
    /// The lock in the way.
    Lock(FoundLock),
    /// A position in a file.
    Offset(u64),
}

/// A file system behind a FUSE session. Every method has a default, mostly `ENOSYS`, which
/// tells the kernel never to ask again.
///
/// Methods run concurrently on the session's threads. A method may wait: another thread serves the
/// other requests of its queue meanwhile. A panic answers `EIO` and is logged.
///
/// [`Answer::Entry`], [`Answer::Created`] and an entry taken by [`DirSink::push_plus`] each give
/// the kernel one reference to that inode, which comes back by [`forget`](Self::forget). The inode
/// number in the attributes is the node id.
#[expect(unused_variables, reason = "defaults answer without looking")]
pub trait Operations: Send + Sync + 'static {
    /// The session is about to begin.
    ///
    /// # Errors
    /// An error ends the mount.
    fn init(&self, negotiated: &Negotiated) -> Result<()> {
        Ok(())
    }

    /// Gives the operations the registry of passthrough files, for the answers of OPEN and CREATE.
    /// Called before the first request, if the configuration wants passthrough and the kernel
    /// offers it.
    fn pass_through(&self, files: BackingFiles) {}

    /// Does the kernel write this inode itself, so that its attributes must not be cached?
    fn is_passed_through(&self, ino: Ino) -> bool {
        false
    }

    /// The session ended; this is the last call.
    fn destroy(&self) {}

    /// The kernel unmounts, and umount(2) returns when this does: everything must be durable and
    /// closed then. Called only for a mount of the type `fuseblk`, before
    /// [`destroy`](Self::destroy). Only `forget` may still follow.
    fn unmounting(&self) {}

    /// Revokes the file system: from now on every operation fails, but those that release something
    /// (`forget`, `flush`, `release`, `releasedir`). The session calls no others any more, and
    /// empties the kernel's caches.
    ///
    /// `cx`: the request for it; `None` if this process calls.
    ///
    /// # Errors
    /// `EPERM` if the caller may not; `ENOTTY` if it is not implemented. After any other error the
    /// file system is revoked even so.
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

    /// Calls `visit` with every inode that the kernel may have a reference of, and perhaps with
    /// others.
    fn known(&self, visit: &mut dyn FnMut(Ino)) {}

    /// May the kernel have a reference of this inode, or is a reply with one under way? Never
    /// `false` if so.
    fn is_known(&self, ino: Ino) -> bool {
        false
    }

    /// How many files and directories are open.
    fn open_files(&self) -> u64 {
        0
    }

    /// Does this request take long, as it waits for a device or works for long? Then another thread
    /// is made ready at once, and this one leaves the caller's processor. Other requests may wait
    /// as well.
    fn takes_long(&self, ino: Ino, request: &Request<'_>) -> bool {
        false
    }

    /// A change was refused with `EROFS`, but the kernel has the mount writable by now. `true`: the
    /// file system is writable too, and the request is served again.
    fn became_writable(&self) -> bool {
        false
    }

    /// Is the kernel notified of all changes of this inode, and of names in this directory, since
    /// then? If so, the reply is valid for longer
    /// ([`Config::notified_timeout`](crate::Config::notified_timeout)), but not longer than this.
    /// Unless it is [`Duration::MAX`], the absence of a name is not cached.
    fn notified_for(&self, ino: Ino, since: Instant) -> Option<Duration> {
        None
    }

    /// Serves every request that no other method is for. `ENOSYS` tells the kernel to stop sending
    /// the operation. For OPEN and OPENDIR it means that files or directories need no opening.
    fn answer(&self, cx: &Context<'_>, ino: Ino, request: Request<'_>) -> Result<Answer> {
        Err(Errno::ENOSYS)
    }

    /// The kernel returns `count` references.
    fn forget(&self, ino: Ino, count: u64) {}

    /// Writes a symbolic link's target to `out`; returns its length.
    fn readlink(&self, ino: Ino, out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Reads into `out`, which is as long as was asked for; returns the bytes read, fewer only
    /// at the end of the file.
    fn read(&self, ino: Ino, request: &ReadRequest, out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Lists entries behind the cookie `request.offset`, with attributes if the sink takes them.
    fn readdir(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        request: &ReadRequest,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// An extended attribute's value: copies it to `out` if it fits, and returns its length. `out`
    /// is empty if only the length is wanted.
    fn getxattr(&self, cx: &Context<'_>, ino: Ino, name: &[u8], out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// The names of extended attributes, each with its NUL; as [`getxattr`](Self::getxattr).
    fn listxattr(&self, cx: &Context<'_>, ino: Ino, out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    /// Sets or clears a lock; with `wait`, waits for it until cancelled.
    ///
    /// # Errors
    /// `EAGAIN` if it is held and there is nothing to wait by, `EINTR` when interrupted.
    fn setlk(&self, ino: Ino, request: &LockRequest, wait: Option<&Cancel>) -> Result<()> {
        Err(Errno::ENOSYS)
    }
}
