//! Asking the daemon of a mount for something: see [`crate::serve::Control`].

use super::sys;
use crate::serve::control::{TrimRange, framed, unframed};
use rustix::fs::{FsWord, Mode, OFlags, fstatfs};
use std::{io, os::fd::OwnedFd, path::Path};

/// What statfs(2) says of every FUSE file system.
const FUSE_MAGIC: FsWord = 0x6573_5546;

/// Holds the root of a FUSE mount.
pub(super) fn open_root(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = rustix::fs::open(dir, flags, Mode::empty())?;
    if fstatfs(&root)?.f_type != FUSE_MAGIC {
        return Err(rustix::io::Errno::NOTTY.into());
    }
    Ok(root)
}

/// A mount that is asked for things.
#[derive(Debug)]
pub struct Controlled(OwnedFd);

impl Controlled {
    /// The mount whose root is `dir`.
    ///
    /// # Errors
    /// `ENOTTY` if it is no FUSE file system; `ENOTCONN` if its daemon is gone.
    pub fn open(dir: &Path) -> io::Result<Self> {
        open_root(dir).map(Self)
    }

    /// Hands a request to the mount's [`Control`](crate::serve::Control); gives its answer. Waits for
    /// the daemon.
    ///
    /// # Errors
    /// `ENOTTY` if it answers none; `EPERM` for what only administrators and the user who mounted may ask;
    /// `E2BIG` for too long a request; what it answers.
    pub fn call(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let mut frame = framed(request)?;
        sys::control(&self.0, &mut frame)?;
        Ok(unframed(&frame[..])?.to_vec())
    }

    /// Discards what is free, as fstrim(8). Gives the bytes that were discarded.
    ///
    /// # Errors
    /// As [`call`](Self::call); `EOPNOTSUPP` where nothing can be discarded.
    pub fn trim(&self, start: u64, len: u64, least: u64) -> io::Result<u64> {
        let mut range = TrimRange { start, len, least };
        sys::trim(&self.0, &mut range)?;
        Ok(range.len)
    }
}
