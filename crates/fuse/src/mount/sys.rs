//! The system calls here that have no safe wrapper.
#![expect(unsafe_code, reason = "ioctl has no safe wrapper")]

use rustix::{
    io::Errno as Code,
    ioctl::{Ioctl, IoctlOutput, Opcode, Setter, Updater, ioctl},
};
use std::{
    ffi::c_void,
    fs::File,
    os::fd::{AsRawFd, OwnedFd},
};
use zerocopy::FromBytes;

/// `LOOP_CTL_GET_FREE`.
const LOOP_GET_FREE: Opcode = 0x4c82;
/// `LOOP_CONFIGURE`.
const LOOP_CONFIGURE: Opcode = 0x4c0a;
/// `LO_FLAGS_READ_ONLY`.
const LOOP_READ_ONLY: u32 = 1;
/// `LO_FLAGS_AUTOCLEAR`.
const LOOP_AUTOCLEAR: u32 = 4;

/// `struct loop_config`: all but the file and the flags may stay zero.
#[repr(C)]
struct LoopConfig {
    file: u32,
    block_size: u32,
    /// Device, inode, device number, offset, limit of `struct loop_info64`.
    numbers: [u64; 5],
    /// Number, kind and key length of an encryption that is no more.
    old: [u32; 3],
    flags: u32,
    /// Names, key, and what comes last of `struct loop_info64`.
    rest: [u8; 64 + 64 + 32 + 16],
    reserved: [u64; 8],
}

/// The number of a free loop device, from `/dev/loop-control`.
pub(super) fn free_loop_device(control: &OwnedFd) -> Result<u32, Code> {
    // SAFETY: the command takes no argument, and answers by the call's value.
    unsafe { ioctl(control, GetFree) }
}

struct GetFree;

// SAFETY: no memory is handed over.
unsafe impl Ioctl for GetFree {
    type Output = u32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> rustix::io::Result<u32> {
        u32::try_from(out).map_err(|_| Code::NODEV)
    }
}

/// Puts a file behind a loop device, until its last user has gone.
pub(super) fn configure_loop_device(
    device: &OwnedFd,
    file: &File,
    read_only: bool,
) -> Result<(), Code> {
    let config = LoopConfig {
        // A descriptor that is open is no negative number.
        file: file.as_raw_fd() as u32,
        block_size: 0,
        numbers: [0; 5],
        old: [0; 3],
        flags: LOOP_AUTOCLEAR | if read_only { LOOP_READ_ONLY } else { 0 },
        rest: [0; 176],
        reserved: [0; 8],
    };
    // SAFETY: the command reads a `struct loop_config`, which the structure is laid out as.
    let command = unsafe { Setter::<LOOP_CONFIGURE, LoopConfig>::new(config) };
    // SAFETY: it is read during the call only; what else is asked is checked by the kernel.
    unsafe { ioctl(device, command) }
}

/// Sends an ioctl to the daemon behind this directory, the root of a FUSE mount. The value is its
/// argument, and holds the answer afterwards.
pub(super) fn exchange<const OPCODE: Opcode, T: FromBytes>(
    root: &OwnedFd,
    value: &mut T,
) -> Result<(), Code> {
    const { assert!(OPCODE >> 16 & 0x3fff == size_of::<T>() as Opcode) };
    // SAFETY: the opcode says that the kernel reads or fills in as many bytes as the value has
    // (asserted above), and any bytes make a value.
    let command = unsafe { Updater::<OPCODE, T>::new(value) };
    // SAFETY: whatever a FUSE daemon answers, the kernel copies no more bytes than the opcode says;
    // callers ensure that it is a FUSE mount.
    unsafe { ioctl(root, command) }
}

#[cfg(test)]
mod tests {
    use super::LoopConfig;

    #[test]
    fn the_configuration_of_a_loop_device_is_as_long_as_the_kernels() {
        assert_eq!(size_of::<LoopConfig>(), 304);
    }
}
