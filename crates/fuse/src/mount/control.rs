//! Requests to the daemon of a mount: see [`crate::serve::Control`].

use super::sys;
use crate::wire::control::{CONTROL, FITRIM, TrimRange, framed, unframed};
use rustix::fs::{FsWord, Mode, OFlags, fstatfs};
use std::{io, os::fd::OwnedFd, path::Path};

/// The type of FUSE file systems in statfs(2).
const FUSE_MAGIC: FsWord = 0x6573_5546;

/// Opens the root of a FUSE mount.
pub(super) fn open_root(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = rustix::fs::open(dir, flags, Mode::empty())?;
    if fstatfs(&root)?.f_type != FUSE_MAGIC {
        return Err(rustix::io::Errno::NOTTY.into());
    }
    Ok(root)
}

/// A mount that takes requests.
#[derive(Debug)]
pub struct Controlled(OwnedFd);

impl Controlled {
    /// Opens the mount at `dir`.
    ///
    /// # Errors
    /// `ENOTTY` if it is no FUSE file system; `ENOTCONN` if its daemon is gone.
    pub fn open(dir: &Path) -> io::Result<Self> {
        open_root(dir).map(Self)
    }

    /// Sends a request to the mount's [`Control`](crate::serve::Control); returns its answer. Waits
    /// for the daemon.
    ///
    /// # Errors
    /// `ENOTTY` without a [`Control`](crate::serve::Control). `EPERM` for what only administrators
    /// and the user that mounted may request. `E2BIG` for too long a request. Errors of the answer.
    pub fn call(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let mut frame = framed(request)?;
        sys::exchange::<CONTROL, _>(&self.0, &mut *frame)?;
        Ok(unframed(&frame[..])?.to_vec())
    }

    /// Discards free space, as fstrim(8). Returns the number of discarded bytes.
    ///
    /// # Errors
    /// As [`call`](Self::call); `EOPNOTSUPP` where nothing can be discarded.
    pub fn trim(&self, start: u64, len: u64, least: u64) -> io::Result<u64> {
        let mut range = TrimRange { start, len, least };
        sys::exchange::<FITRIM, _>(&self.0, &mut range)?;
        Ok(range.len)
    }
}
