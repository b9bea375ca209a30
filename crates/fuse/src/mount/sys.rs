//! The system call here that has no safe wrapper.
#![expect(unsafe_code, reason = "ioctl has no safe wrapper")]

use crate::serve::control::{CONTROL, CONTROL_BYTES, FITRIM, TrimRange};
use crate::session::REVOKE;
use rustix::{
    io::Errno as Code,
    ioctl::{Getter, Updater, ioctl},
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

/// Hands a request to the daemon behind this directory, and gets its answer in the same place.
pub(super) fn control(root: &OwnedFd, frame: &mut [u8; CONTROL_BYTES]) -> Result<(), Code> {
    // SAFETY: the opcode says that the kernel reads and fills in as many bytes as the array has.
    let command = unsafe { Updater::<CONTROL, [u8; CONTROL_BYTES]>::new(frame) };
    // SAFETY: whatever a FUSE daemon answers, the kernel copies no more bytes than the opcode says;
    // callers see to it that it is a FUSE mount.
    unsafe { ioctl(root, command) }
}

/// `FITRIM`.
pub(super) fn trim(root: &OwnedFd, range: &mut TrimRange) -> Result<(), Code> {
    // SAFETY: the opcode says that the kernel reads and fills in three numbers of 8 bytes, which the
    // structure is.
    let command = unsafe { Updater::<FITRIM, TrimRange>::new(range) };
    // SAFETY: as above: no more bytes than the opcode says, and any of them make numbers.
    unsafe { ioctl(root, command) }
}
