//! The ioctls of block devices that have no safe wrapper.
#![expect(unsafe_code, reason = "ioctls without a safe wrapper")]

use rustix::fd::AsFd;
use rustix::io::Result;
use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};

/// `BLKGETSIZE64`: the kernel declares a size_t and stores 64 bits.
const SIZE: Opcode = opcode::read::<usize>(0x12, 114);
/// `BLKDISCARD`: takes two 64-bit numbers, offset and length in bytes.
const DISCARD: Opcode = opcode::none(0x12, 119);

/// `BLKROGET`: the kernel declares nothing and stores an int.
const READ_ONLY: Opcode = opcode::none(0x12, 94);

/// Does the device refuse writes? The kernel opens it for writing all the same.
pub(super) fn block_device_is_read_only(file: impl AsFd) -> Result<bool> {
    // SAFETY: BLKROGET stores an int at the pointer, which Getter points at one.
    let read_only = unsafe { Getter::<READ_ONLY, core::ffi::c_int>::new() };
    // SAFETY: the kernel writes to the int inside `read_only` alone, which lives through the call.
    Ok(unsafe { ioctl(file, read_only) }? != 0)
}

/// Its size in bytes.
pub(super) fn block_device_size(file: impl AsFd) -> Result<u64> {
    // SAFETY: BLKGETSIZE64 stores 64 bits at the pointer, which Getter points at a u64.
    let size = unsafe { Getter::<SIZE, u64>::new() };
    // SAFETY: the kernel writes to the u64 inside `size` alone, which lives through the call;
    // a file that is no block device answers ENOTTY.
    unsafe { ioctl(file, size) }
}

/// Discards a range. Its content is undefined then.
pub(super) fn block_device_discard(file: impl AsFd, offset: u64, len: u64) -> Result<()> {
    // SAFETY: BLKDISCARD reads two 64-bit numbers at the pointer, which Setter points at two.
    let range = unsafe { Setter::<DISCARD, [u64; 2]>::new([offset, len]) };
    // SAFETY: the kernel reads `range`, which lives through the call, and writes no memory of ours.
    unsafe { ioctl(file, range) }
}
