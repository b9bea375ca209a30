//! ioctl(2) on the mount: control requests on its root directory, and FITRIM on any file.
//!
//! `FITRIM` is the kernel's, for fstrim(8). Every other request is one command, with a payload that
//! only the caller and the [`Control`] interpret; here only its length is limited.

use super::{CoreOperations, caller::unchecked_caller, revoke::may_unmount};
use crate::Context;
use holdfast_core::types::{Caller, Errno, Ino, Result};
use rustix::ioctl::{Opcode, opcode};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a `CONTROL` request and of its answer: the largest multiple of 8 that an ioctl can
/// have.
pub const CONTROL_BYTES: usize = 16_376;

/// The ioctl on the root directory that hands a request to the mount's [`Control`], and brings its
/// answer back. Both begin with their length, 4 bytes.
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

    /// Answers a request, in fewer than [`CONTROL_BYTES`] - 4 bytes. Any process that may open the
    /// root directory can send one: the implementation checks permissions.
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

impl CoreOperations {
    /// Answers an ioctl with bytes.
    pub(super) fn control(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        command: u32,
        input: &[u8],
    ) -> Result<Vec<u8>> {
        // FITRIM is for the file system that an open file is on; other requests are for its root.
        if command != FITRIM && (command != CONTROL || ino != Ino::ROOT) {
            return Err(Errno::ENOTTY);
        }
        let control = self.control.read().clone().ok_or(Errno::ENOTTY)?;
        let may_administer = may_unmount(cx);
        if command == CONTROL {
            let asking = Asking {
                caller: unchecked_caller(cx),
                may_administer,
            };
            let answer = control.call(unframed(input)?, &asking)?;
            return Ok(framed(&answer)?.to_vec());
        }
        if !may_administer {
            return Err(Errno::EPERM);
        }
        let mut range = TrimRange::read_from_bytes(input).map_err(|_| Errno::EINVAL)?;
        range.len = control.trim(range.start, range.len, range.least)?;
        Ok(range.as_bytes().to_vec())
    }
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
