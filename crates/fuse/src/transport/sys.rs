//! The unsafe floor of the transports: memory regions, cloning `/dev/fuse`, and registering files
//! with it.
#![expect(unsafe_code, reason = "mmap and ioctl have no safe wrapper")]

use crate::wire::layout;
use rustix::{
    fs::{Mode, OFlags},
    ioctl::{Ioctl, IoctlOutput, Opcode, Setter, ioctl, opcode},
    mm::{MapFlags, ProtFlags, mmap_anonymous, munmap},
};
use std::{
    fmt, io,
    ops::{Deref, DerefMut},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    ptr::NonNull,
    slice,
};

/// Private anonymous memory, zeroed and faulted in on access.
pub(crate) struct Region {
    start: NonNull<u8>,
    len: usize,
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

// SAFETY: a region owns its memory, nothing in it belongs to a thread.
unsafe impl Send for Region {}
// SAFETY: through a shared reference the memory can only be read.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `len` bytes (not 0).
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        // SAFETY: a new private mapping at an address of the kernel's choice touches nothing
        // that exists.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Where the region starts, for the kernel.
    pub(crate) fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Deref for Region {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `new` mapped `len` readable zeroed bytes, which stay until drop; only the
        // owner of a `Region` reaches them, and the kernel only while `Ring` holds the owner.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` excludes every other reference.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly this range, and no reference outlives the owner. An error
        // would mean a wrong range, and cannot be returned.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// `FUSE_DEV_IOC_CLONE`.
const CLONE: Opcode = opcode::read::<u32>(229, 0);

/// Opens another descriptor of the same connection, with a queue of its own.
pub(crate) fn clone_device(device: &OwnedFd) -> io::Result<OwnedFd> {
    let clone = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let number = device.as_raw_fd().cast_unsigned();
    // SAFETY: the opcode takes a pointer to a 32-bit descriptor number, which it reads.
    let command = unsafe { Setter::<CLONE, u32>::new(number) };
    // SAFETY: `clone` is a fuse device, which knows this command; it changes no memory of ours.
    unsafe { ioctl(clone.as_fd(), command) }?;
    Ok(clone)
}

/// `FUSE_DEV_IOC_BACKING_OPEN`: answers a number.
struct BackingOpen(layout::BackingMap);

// SAFETY: the opcode takes a pointer to a structure of this layout, which `as_ptr` returns. The
// kernel only reads it. The answer is the call's value, no memory of ours.
unsafe impl Ioctl for BackingOpen {
    type Output = i32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        opcode::write::<layout::BackingMap>(229, 1)
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(
        answer: IoctlOutput,
        _: *mut std::ffi::c_void,
    ) -> rustix::io::Result<i32> {
        Ok(answer)
    }
}

/// `FUSE_DEV_IOC_BACKING_CLOSE`.
const BACKING_CLOSE: Opcode = opcode::write::<u32>(229, 2);

/// Registers the file of a descriptor for passthrough; returns its number. The descriptor may be
/// closed then.
pub(crate) fn register_backing(device: &OwnedFd, descriptor: i32) -> rustix::io::Result<i32> {
    let map = layout::BackingMap {
        fd: descriptor,
        ..Default::default()
    };
    // SAFETY: `device` is a fuse device, which knows this command; the kernel looks the
    // descriptor's number up and changes no memory of ours.
    unsafe { ioctl(device.as_fd(), BackingOpen(map)) }
}

/// Removes a registration.
pub(crate) fn unregister_backing(device: &OwnedFd, number: i32) -> rustix::io::Result<()> {
    // SAFETY: the opcode takes a pointer to a 32-bit number, which it reads.
    let command = unsafe { Setter::<BACKING_CLOSE, u32>::new(number.cast_unsigned()) };
    // SAFETY: as above.
    unsafe { ioctl(device.as_fd(), command) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_starts_zeroed_and_holds_what_is_written() {
        let mut region = Region::new(1 << 20).unwrap();
        assert!(region.iter().all(|&byte| byte == 0));
        region[(1 << 20) - 1] = 7;
        assert_eq!(region[(1 << 20) - 1], 7);
        assert_eq!(region.address().align_offset(4096), 0);
    }
}
