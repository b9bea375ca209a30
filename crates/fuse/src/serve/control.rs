//! What answers control requests on a mount's root directory, and FITRIM on any file.

use holdfast_core::types::{Caller, Result};

/// The process that a request came from.
#[derive(Clone, Debug)]
pub struct Asking {
    /// The user of the process, with its capabilities on this file system. None of its permissions
    /// was checked.
    pub caller: Caller,
    /// Does it belong to an administrator, or to the user that mounted?
    pub may_administer: bool,
}

/// What answers such requests.
pub trait Control: Send + Sync {
    /// Returns the number of discarded bytes. Only administrators and the user that mounted can
    /// call it.
    ///
    /// # Errors
    /// `EOPNOTSUPP`; `EINVAL` for a range that begins behind the end or is shorter than a block;
    /// those of the device.
    fn trim(&self, start: u64, len: u64, least: u64) -> Result<u64>;

    /// Answers a request, in fewer than [`CONTROL_BYTES`](super::CONTROL_BYTES) - 4 bytes. Any
    /// process that may open the root directory can send one: the implementation checks
    /// permissions.
    ///
    /// # Errors
    /// An error that the caller's ioctl(2) fails with; `EPERM`.
    fn call(&self, request: &[u8], asking: &Asking) -> Result<Vec<u8>>;

    /// The file system refused a change with `EROFS`, but the kernel has the mount writable by now.
    /// `true`: the file system is writable too, and the change is tried again.
    fn became_writable(&self) -> bool {
        false
    }

    /// The kernel unmounts, and umount(2) waits until this returns: see
    /// [`Operations::unmounting`](crate::Operations::unmounting). No request uses the file system
    /// any more.
    fn unmounting(&self) {}
}
