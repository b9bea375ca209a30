//! The one system call here that has no safe wrapper.
#![expect(unsafe_code, reason = "ioctl has no safe wrapper")]

use crate::session::REVOKE;
use rustix::{
    io::Errno as Code,
    ioctl::{Getter, ioctl},
};
use std::os::fd::OwnedFd;

/// Asks the daemon behind this directory, the root of a FUSE mount, to take the mount away. Gives
/// the number of open files.
pub(super) fn ask_to_revoke(root: &OwnedFd) -> Result<u64, Code> {
    // SAFETY: the opcode says that the kernel fills in 8 bytes, any of which make a number.
    let command = unsafe { Getter::<REVOKE, u64>::new() };
    // SAFETY: whatever a FUSE daemon answers, the kernel copies no more bytes than the opcode says;
    // callers see to it that it is a FUSE mount.
    unsafe { ioctl(root, command) }
}
