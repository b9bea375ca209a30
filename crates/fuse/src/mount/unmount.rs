//! Unmounting, and clearing the mounts of killed daemons.

use super::{
    UmountError, helper,
    holders::holders,
    table::{absolute, mounted_at},
};
use rustix::{
    io::Errno as Code,
    mount::{UnmountFlags, unmount},
};
use std::path::Path;

/// How to unmount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UmountFlags {
    /// Detach it now; the file system ends with its last user.
    pub lazy: bool,
    /// Abort the connection first: requests under way are lost, and open files fail. For a daemon
    /// that hangs; [`Session::revoke`](crate::Session::revoke) is for a live one.
    pub force: bool,
}

impl UmountFlags {
    /// Both: for a mount that is to be removed in any case.
    pub(crate) const DETACH: Self = Self {
        lazy: true,
        force: true,
    };
}

/// Unmounts the FUSE file system at `dir`, alive or dead.
///
/// # Errors
/// [`UmountError::Busy`] lists the processes that use it.
pub fn umount(dir: &Path, flags: UmountFlags) -> Result<(), UmountError> {
    let refused = |source| UmountError::Refused {
        dir: dir.to_owned(),
        source,
    };
    let path = absolute(dir).map_err(refused)?;
    let not_mounted = || UmountError::NotMounted {
        dir: dir.to_owned(),
    };
    let mounted = mounted_at(&path)
        .map_err(refused)?
        .ok_or_else(not_mounted)?;
    if !mounted.is_fuse() {
        return Err(UmountError::Foreign {
            dir: dir.to_owned(),
            fs_type: mounted.fs_type,
        });
    }
    let mut how = UnmountFlags::NOFOLLOW;
    how.set(UnmountFlags::DETACH, flags.lazy);
    how.set(UnmountFlags::FORCE, flags.force);
    match unmount(&path, how) {
        Ok(()) => Ok(()),
        Err(Code::BUSY) => Err(UmountError::Busy {
            dir: path.clone(),
            holders: holders(&path),
        }),
        Err(Code::INVAL | Code::NOENT) => Err(not_mounted()),
        Err(Code::PERM | Code::ACCESS) => helper::unmount(&path, flags.lazy),
        Err(error) => Err(refused(error.into())),
    }
}

/// Is `dir` the mount point of a FUSE daemon that is gone?
///
/// Calls statfs(2), which no cache answers; a daemon that hangs blocks it.
#[must_use]
pub fn is_stale(dir: &Path) -> bool {
    let Ok(Some(mounted)) = mounted_at(dir) else {
        return false;
    };
    mounted.is_fuse()
        && matches!(
            rustix::fs::statfs(dir),
            Err(Code::NOTCONN | Code::CONNABORTED)
        )
}

/// Clears the mount point of a daemon that is gone.
///
/// # Errors
/// [`UmountError::NotStale`] if the daemon lives; else those of [`umount`].
pub fn clear_stale(dir: &Path) -> Result<(), UmountError> {
    if !is_stale(dir) {
        return Err(UmountError::NotStale {
            dir: dir.to_owned(),
        });
    }
    // Requests of its users are never answered, so waiting for these to close it is useless.
    umount(dir, UmountFlags::DETACH)
}
