//! The few system calls the host target needs that have no safe wrapper: those that act on
//! the calling thread alone, record locks with a range, and truncate(2) by path.
#![expect(unsafe_code, reason = "raw system calls without a safe wrapper")]

use crate::diff::op::{LockFamily, LockWant};
use crate::diff::outcome::SeenLock;
use holdfast_types::{Errno, Result};
use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd};

fn last_error() -> Errno {
    Errno::from(std::io::Error::last_os_error())
}

fn checked(result: libc::c_int) -> Result<()> {
    if result < 0 {
        Err(last_error())
    } else {
        Ok(())
    }
}

/// Gives the calling thread its own root, working directory and umask.
pub(super) fn unshare_fs() -> Result<()> {
    // SAFETY: CLONE_FS copies the thread's fs_struct; no memory or descriptor is concerned.
    checked(unsafe { libc::unshare(libc::CLONE_FS) })
}

/// Gives the calling thread its own descriptor table, holding only 0, 1 and 2.
///
/// The caller must be a thread that owns no other descriptor and will not be given one by
/// another thread: their numbers mean nothing in its new table.
pub(super) fn unshare_files() -> Result<()> {
    let flags = libc::CLOSE_RANGE_UNSHARE as libc::c_int;
    // SAFETY: the table is copied first (UNSHARE), so no other thread's descriptor is closed,
    // and this thread owns none.
    checked(unsafe { libc::close_range(3, libc::c_uint::MAX, flags) })
}

/// Sets the calling thread's file system user and group id.
pub(super) fn set_fs_ids(uid: u32, gid: u32) -> Result<()> {
    // SAFETY: changes the calling thread's credentials, no memory.
    unsafe { libc::setfsgid(gid) };
    // SAFETY: as above.
    unsafe { libc::setfsuid(uid) };
    // These calls cannot say that they failed: asking with an invalid id answers the present one.
    // SAFETY: as above; an invalid id changes nothing.
    let now_gid = unsafe { libc::setfsgid(libc::gid_t::MAX) };
    // SAFETY: as above.
    let now_uid = unsafe { libc::setfsuid(libc::uid_t::MAX) };
    if (now_uid, now_gid) == (uid.cast_signed(), gid.cast_signed()) {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

/// truncate(2).
pub(super) fn truncate(path: &[u8], len: i64) -> Result<()> {
    let path = CString::new(path).map_err(|_| Errno::EINVAL)?;
    // SAFETY: `path` is NUL-terminated and outlives the call.
    checked(unsafe { libc::truncate(path.as_ptr(), len) })
}

/// ftruncate(2), with lengths that are negative too.
pub(super) fn ftruncate(fd: BorrowedFd<'_>, len: i64) -> Result<()> {
    // SAFETY: the descriptor is borrowed for the call.
    checked(unsafe { libc::ftruncate(fd.as_raw_fd(), len) })
}

fn request(want: LockWant, start: i64, len: i64) -> libc::flock {
    let kind = match want {
        LockWant::Read => libc::F_RDLCK,
        LockWant::Write => libc::F_WRLCK,
        LockWant::Unlock => libc::F_UNLCK,
    };
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: len,
        l_pid: 0,
    }
}

/// Takes or gives back a record lock without waiting.
pub(super) fn set_lock(
    fd: BorrowedFd<'_>,
    family: LockFamily,
    want: LockWant,
    start: i64,
    len: i64,
) -> Result<()> {
    let command = match family {
        LockFamily::Posix => libc::F_SETLK,
        LockFamily::Ofd => libc::F_OFD_SETLK,
    };
    let lock = request(want, start, len);
    // SAFETY: both commands read one `flock`, which outlives the call.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw const lock) })
}

/// Asks which record lock stands in the way.
pub(super) fn get_lock(
    fd: BorrowedFd<'_>,
    family: LockFamily,
    want: LockWant,
    start: i64,
    len: i64,
) -> Result<Option<SeenLock>> {
    let command = match family {
        LockFamily::Posix => libc::F_GETLK,
        LockFamily::Ofd => libc::F_OFD_GETLK,
    };
    let mut lock = request(want, start, len);
    // SAFETY: both commands read and write one `flock`, which outlives the call.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut lock) })?;
    let kind = match libc::c_int::from(lock.l_type) {
        libc::F_UNLCK => return Ok(None),
        libc::F_RDLCK => LockWant::Read,
        _ => LockWant::Write,
    };
    Ok(Some(SeenLock {
        kind,
        start: lock.l_start,
        len: lock.l_len,
        of_process: lock.l_pid != -1,
    }))
}
