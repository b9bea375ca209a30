//! Registers files of the host for passthrough, by numbers of this connection.

use crate::transport::sys::{register_backing, unregister_backing};
use rustix::io::Errno as Code;
use std::{
    fmt,
    os::fd::{AsRawFd as _, BorrowedFd, OwnedFd},
    sync::{Arc, Weak},
};

use holdfast_types::{Errno, Result};

/// Registers files with the kernel.
#[derive(Clone)]
pub struct BackingFiles {
    /// The connection, as long as its session has it.
    device: Weak<OwnedFd>,
}

impl fmt::Debug for BackingFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackingFiles").finish_non_exhaustive()
    }
}

impl BackingFiles {
    /// Of a connection on which INIT was answered.
    ///
    /// # Errors
    /// Why the kernel takes no files on it.
    pub(super) fn of(device: &Arc<OwnedFd>) -> std::result::Result<Self, String> {
        // An invalid descriptor tests the permission: `EBADF` means that a valid file would be
        // accepted.
        match register_backing(device, -1) {
            Err(Code::BADF) => Ok(Self {
                device: Arc::downgrade(device),
            }),
            Err(Code::PERM) => Err("this process has not the capability CAP_SYS_ADMIN".into()),
            Err(error) => Err(format!("the kernel takes no files: {error}")),
            Ok(_) => Err("the kernel took a file that is none".into()),
        }
    }

    /// Registers a file by a descriptor, which may be `O_PATH`; returns its number. The kernel then
    /// opens the file itself, and reads and writes it with the present credentials of this thread.
    ///
    /// # Errors
    /// `EPERM`: this process may not. `ELOOP`: its file system lies over another one. `ENODEV`: the
    /// session is over.
    pub fn register(&self, file: BorrowedFd<'_>) -> Result<i32> {
        let device = self.device.upgrade().ok_or(Errno::ENODEV)?;
        register_backing(&device, file.as_raw_fd())
            .map_err(|error| Errno::from_raw(error.raw_os_error()))
    }

    /// Removes a registration. Files that the kernel opened by it stay open.
    pub fn unregister(&self, number: i32) {
        // The end of the session removes all registrations.
        if let Some(device) = self.device.upgrade()
            && let Err(error) = unregister_backing(&device, number)
        {
            tracing::debug!(number, %error, "a registration is not taken back");
        }
    }
}
