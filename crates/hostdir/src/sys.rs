//! The system calls without a safe wrapper: those that act on the calling thread's credentials alone, and a close(2) that says how it went.
#![expect(unsafe_code, reason = "raw system calls without a safe wrapper")]

use holdfast_core::types::{Errno, Result};
use std::os::fd::{IntoRawFd, OwnedFd};

/// Sets the calling thread's file system group.
///
/// # Errors
/// `EPERM`.
pub(crate) fn set_fs_group(gid: u32) -> Result<()> {
    // SAFETY: changes the calling thread's credentials, no memory.
    unsafe { libc::setfsgid(gid) };
    // It cannot say that it failed: asking with an invalid id answers the present one.
    // SAFETY: as above; an invalid id changes nothing.
    let now = unsafe { libc::setfsgid(libc::gid_t::MAX) };
    match now.cast_unsigned() == gid {
        true => Ok(()),
        false => Err(Errno::EPERM),
    }
}

/// Sets the calling thread's file system user; of its effective capabilities those about files go if it was root, and come back if it
/// becomes root.
///
/// # Errors
/// `EPERM`.
pub(crate) fn set_fs_user(uid: u32) -> Result<()> {
    // SAFETY: changes the calling thread's credentials, no memory.
    unsafe { libc::setfsuid(uid) };
    // SAFETY: as above; an invalid id changes nothing.
    let now = unsafe { libc::setfsuid(libc::uid_t::MAX) };
    match now.cast_unsigned() == uid {
        true => Ok(()),
        false => Err(Errno::EPERM),
    }
}

/// Closes a descriptor, and says how that went: a network's file system may tell only now what it could not write.
///
/// # Errors
/// Those of close(2); the descriptor is closed all the same.
pub(crate) fn close(descriptor: OwnedFd) -> Result<()> {
    // SAFETY: it was owned here, and nobody uses its number any more.
    let closed = unsafe { libc::close(descriptor.into_raw_fd()) };
    match closed {
        0 => Ok(()),
        _ => Err(Errno::from(std::io::Error::last_os_error())),
    }
}
