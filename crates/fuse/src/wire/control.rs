//! The ioctl(2) commands that administer a mount, and the form of its control requests.
//!
//! [`FITRIM`] is the kernel's, for fstrim(8), and [`REVOKE`] revokes the mount. Every other request
//! is a [`CONTROL`], with a payload that only the caller and the mount's
//! [`Control`](crate::serve::Control) interpret; here only its length is limited.

use holdfast_types::{Errno, Result};
use rustix::ioctl::{Opcode, opcode};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The ioctl on the mount's root directory that revokes it. It returns the number of open files,
/// with that of the caller.
pub(crate) const REVOKE: Opcode = opcode::read::<u64>(b'h', 0xf5);

/// Bytes of a `CONTROL` request and of its answer: the largest multiple of 8 that an ioctl can
/// have.
pub const CONTROL_BYTES: usize = 16_376;

/// The ioctl on the root directory that hands a request to what answers for the mount, and brings
/// its answer back. Both begin with their length, 4 bytes.
pub(crate) const CONTROL: Opcode = opcode::read_write::<[u8; CONTROL_BYTES]>(b'h', 0xf6);

/// `FITRIM` of Linux.
pub(crate) const FITRIM: Opcode = opcode::read_write::<TrimRange>(b'X', 121);

/// `struct fstrim_range`.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct TrimRange {
    /// First byte.
    pub(crate) start: u64,
    /// How many; discarded ones in the answer.
    pub(crate) len: u64,
    /// Shortest run of free bytes.
    pub(crate) least: u64,
}

/// Prefixes the bytes with their length.
pub(crate) fn framed(bytes: &[u8]) -> Result<Box<[u8; CONTROL_BYTES]>> {
    let mut frame = Box::new([0; CONTROL_BYTES]);
    let room = frame.get_mut(4..4 + bytes.len()).ok_or(Errno::E2BIG)?;
    room.copy_from_slice(bytes);
    frame[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    Ok(frame)
}

/// The bytes of a frame.
pub(crate) fn unframed(frame: &[u8]) -> Result<&[u8]> {
    let (len, rest) = frame.split_first_chunk().ok_or(Errno::EINVAL)?;
    let len = u32::from_le_bytes(*len) as usize;
    rest.get(..len).ok_or(Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_framed_comes_out_again_and_lengths_are_checked() {
        for bytes in [&b""[..], b"request", &[7; CONTROL_BYTES - 4]] {
            assert_eq!(unframed(&framed(bytes).unwrap()[..]), Ok(bytes));
        }
        assert_eq!(
            framed(&[0; CONTROL_BYTES - 3]).map(|_| ()),
            Err(Errno::E2BIG)
        );
        let mut frame = framed(b"x").unwrap();
        frame[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(unframed(&frame[..]), Err(Errno::EINVAL));
        assert_eq!(unframed(&[1, 2]), Err(Errno::EINVAL));
    }

    #[test]
    fn the_commands_are_those_of_the_kernel() {
        assert_eq!(FITRIM, 0xc018_5879);
        assert!(CONTROL >> 16 & 0x3fff == CONTROL_BYTES as u32);
    }
}
