//! System calls without a safe wrapper: setfsuid(2) and setfsgid(2), close(2) with its error, and
//! file handles.
#![expect(unsafe_code, reason = "raw system calls without a safe wrapper")]

use holdfast_core::types::{Errno, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

/// A system call's error, as the core knows it.
pub(crate) fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// Most bytes of a handle (`MAX_HANDLE_SZ`).
const HANDLE: usize = 128;

/// `struct file_handle` of the kernel, with the largest handle.
#[repr(C)]
struct RawHandle {
    bytes: u32,
    kind: i32,
    handle: [u8; HANDLE],
}

/// A handle of an inode, valid regardless of its names while it has one or is open.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    kind: i32,
    bytes: Box<[u8]>,
}

/// Sets the calling thread's file system group.
///
/// # Errors
/// `EPERM`.
pub(crate) fn set_fs_group(gid: u32) -> Result<()> {
    // SAFETY: changes the calling thread's credentials, no memory.
    unsafe { libc::setfsgid(gid) };
    // The call reports no error: a call with an invalid id returns the present one.
    // SAFETY: as above; an invalid id changes nothing.
    is_now(unsafe { libc::setfsgid(libc::gid_t::MAX) }, gid)
}

fn is_now(now: libc::c_int, id: u32) -> Result<()> {
    (now.cast_unsigned() == id)
        .then_some(())
        .ok_or(Errno::EPERM)
}

/// Sets the calling thread's file system user. Leaving root clears its effective capabilities about
/// files, and becoming root restores them.
///
/// # Errors
/// `EPERM`.
pub(crate) fn set_fs_user(uid: u32) -> Result<()> {
    // SAFETY: changes the calling thread's credentials, no memory.
    unsafe { libc::setfsuid(uid) };
    // SAFETY: as above; an invalid id changes nothing.
    is_now(unsafe { libc::setfsuid(libc::uid_t::MAX) }, uid)
}

/// Closes a descriptor and returns its error: a network file system may report a failed write only
/// here.
///
/// # Errors
/// Those of close(2); the descriptor is closed all the same.
pub(crate) fn close(descriptor: OwnedFd) -> Result<()> {
    // SAFETY: it was owned here, and its number is not used any more.
    let closed = unsafe { libc::close(descriptor.into_raw_fd()) };
    match closed {
        0 => Ok(()),
        _ => Err(Errno::from(std::io::Error::last_os_error())),
    }
}

impl Handle {
    /// The handle of an open inode. `None`: its file system has none.
    pub(crate) fn of(open: BorrowedFd<'_>) -> Option<Self> {
        let mut raw = RawHandle {
            bytes: HANDLE as u32,
            kind: 0,
            handle: [0; HANDLE],
        };
        let mut mount: libc::c_int = 0;
        // SAFETY: the path is NUL-terminated. The kernel writes a number to `mount`, and to `raw`
        // at most the `HANDLE` bytes given as its length. Both outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                open.as_raw_fd(),
                c"".as_ptr(),
                &raw mut raw,
                &raw mut mount,
                libc::AT_EMPTY_PATH,
            )
        };
        let bytes = raw.handle.get(..raw.bytes as usize)?;
        (result == 0).then(|| Self {
            kind: raw.kind,
            bytes: bytes.into(),
        })
    }

    /// Opens it on the mount of `on`, as an `O_PATH` descriptor.
    ///
    /// # Errors
    /// `ESTALE`: it is gone. `EPERM`: only root may.
    pub(crate) fn open(&self, on: BorrowedFd<'_>) -> Result<OwnedFd> {
        let mut raw = RawHandle {
            bytes: self.bytes.len() as u32,
            kind: self.kind,
            handle: [0; HANDLE],
        };
        let room = raw.handle.get_mut(..self.bytes.len());
        room.ok_or(Errno::ESTALE)?.copy_from_slice(&self.bytes);
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the kernel reads `raw`, which outlives the call, and of it as many bytes as it
        // says.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                on.as_raw_fd(),
                &raw const raw,
                flags,
            )
        };
        match i32::try_from(opened) {
            // SAFETY: the kernel has just opened it, and nothing else owns its number.
            Ok(opened @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(opened) }),
            _ => Err(Errno::from(std::io::Error::last_os_error())),
        }
    }

    /// Bytes of memory.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}
