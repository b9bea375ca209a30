//! Asking a daemon to take its mount away.

use super::{control::open_root, sys::ask_to_revoke};
use std::{io, path::Path};

/// Asks the daemon of the mount at `dir` to take it away from all who use it: see
/// [`Session::revoke`](crate::Session::revoke). The mount stays until it is unmounted, which may
/// need [`UmountFlags::lazy`](super::UmountFlags). Gives the number of files and directories that
/// are still open by the daemon.
///
/// It waits for the daemon, and for ever for one that hangs.
///
/// # Errors
/// `EPERM` for anybody but administrators and whoever mounted it; `ENOTTY` if the daemon does not
/// know how (it is not Holdfast's, or an old one); `EIO` if the mount was taken away before, or if
/// what was done before could not be made durable; `ENOTCONN` if the daemon is gone.
pub fn revoke(dir: &Path) -> io::Result<u64> {
    let root = open_root(dir)?;
    Ok(ask_to_revoke(&root)?)
}
