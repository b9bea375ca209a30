//! Requesting a daemon to revoke its mount.

use super::{control::open_root, sys::exchange};
use crate::wire::control::REVOKE;
use std::{io, path::Path};

/// Requests the daemon of the mount at `dir` to revoke it: see
/// [`Session::revoke`](crate::Session::revoke). The mount stays until it is unmounted, which may
/// need [`UmountFlags::lazy`](super::UmountFlags). Returns the number of files and directories that
/// are still open.
///
/// It waits for the daemon, forever if that hangs.
///
/// # Errors
/// `EPERM` except for administrators and the user that mounted. `ENOTTY` if the daemon is not
/// Holdfast's. `EIO` if the mount was revoked before, or if earlier changes could not be made
/// durable. `ENOTCONN` if the daemon is gone.
pub fn revoke(dir: &Path) -> io::Result<u64> {
    let mut open_files = 0u64;
    exchange::<REVOKE, _>(&open_root(dir)?, &mut open_files)?;
    Ok(open_files)
}
