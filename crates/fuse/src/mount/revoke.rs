//! Asking a daemon to take its mount away.

use super::sys::ask_to_revoke;
use rustix::fs::{FsWord, Mode, OFlags, fstatfs};
use std::{io, path::Path};

/// What statfs(2) says of every FUSE file system.
const FUSE_MAGIC: FsWord = 0x6573_5546;

/// Asks the daemon of the mount at `dir` to take it away from all who use it: see
/// [`Session::revoke`](crate::Session::revoke). The mount stays until it is unmounted, which may
/// need [`UmountFlags::lazy`](super::UmountFlags). Gives the number of files and directories that
/// are still open.
///
/// It waits for the daemon, and for ever for one that hangs.
///
/// # Errors
/// `EPERM` for anybody but administrators and whoever mounted it; `ENOTTY` if the daemon does not
/// know how (it is not Holdfast's, or an old one); `EIO` if the mount was taken away before, or if
/// what was done before could not be made durable; `ENOTCONN` if the daemon is gone.
pub fn revoke(dir: &Path) -> io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let root = rustix::fs::open(dir, flags, Mode::empty())?;
    if fstatfs(&root)?.f_type != FUSE_MAGIC {
        return Err(rustix::io::Errno::NOTTY.into());
    }
    let open_files = ask_to_revoke(&root)?;
    // Without the one that was opened just now.
    Ok(open_files.saturating_sub(1))
}
