//! File flags by ioctl(2), as chattr(1), lsattr(1) and xfs_io(8) ask for them.
//!
//! Since Linux 5.13 the kernel sends these commands for any file or directory. It has checked the
//! caller: the owner, and `CAP_LINUX_IMMUTABLE` for *immutable* and *append*.

use super::{CoreOperations, caller::caller};
use crate::Context;
use holdfast_core::types::{Errno, FileFlags, Ino, Result};
use rustix::ioctl::{Opcode, opcode};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `FS_IOC_GETFLAGS`: the type that its number has is a `long`, that of its argument an `int`.
pub(super) const GET_FLAGS: Opcode = opcode::read::<libc::c_long>(b'f', 1);
/// `FS_IOC_SETFLAGS`.
pub(super) const SET_FLAGS: Opcode = opcode::write::<libc::c_long>(b'f', 2);
/// `FS_IOC_FSGETXATTR`.
pub(super) const GET_ATTRIBUTES: Opcode = opcode::read::<FileAttributes>(b'X', 31);
/// `FS_IOC_FSSETXATTR`.
pub(super) const SET_ATTRIBUTES: Opcode = opcode::write::<FileAttributes>(b'X', 32);

/// `struct fsxattr`.
#[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct FileAttributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    copy_extent_size: u32,
    reserved: [u8; 8],
}

/// File flags and their bits in [`FileAttributes`].
const FLAGS: [(FileFlags, u32); 5] = [
    (FileFlags::IMMUTABLE, 0x8),
    (FileFlags::APPEND, 0x10),
    (FileFlags::NOATIME, 0x40),
    (FileFlags::NODUMP, 0x80),
    (FileFlags::PROJECT_INHERIT, 0x200),
];

/// `FS_XFLAG_HASATTR`, which is read-only.
const HAS_ATTRIBUTES: u32 = 0x8000_0000;

impl CoreOperations {
    /// Answers one of these commands; `None`: another command.
    pub(super) fn flags_ioctl(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        command: u32,
        input: &[u8],
    ) -> Option<Result<Vec<u8>>> {
        match command {
            GET_FLAGS => Some(self.file_flags(ino)),
            SET_FLAGS => Some(self.set_file_flags(cx, ino, input)),
            GET_ATTRIBUTES => Some(self.file_attributes(ino)),
            SET_ATTRIBUTES => Some(self.set_file_attributes(cx, ino, input)),
            _ => None,
        }
    }

    fn file_flags(&self, ino: Ino) -> Result<Vec<u8>> {
        let flags = self.fs.flags(&self.fs.node(ino)?);
        Ok(flags.bits().as_bytes().to_vec())
    }

    fn set_file_flags(&self, cx: &Context<'_>, ino: Ino, input: &[u8]) -> Result<Vec<u8>> {
        let (bits, _) = u32::read_from_prefix(input).map_err(|_| Errno::EINVAL)?;
        let flags = FileFlags::from_bits_retain(bits);
        self.change_flags(cx, ino, flags, None)
    }

    fn file_attributes(&self, ino: Ino) -> Result<Vec<u8>> {
        let node = self.fs.node(ino)?;
        let flags = self.fs.flags(&node);
        let held = FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
        let found = FileAttributes {
            flags: held.fold(0, |bits, (_, bit)| bits | bit),
            project: self.fs.project(&node),
            ..FileAttributes::default()
        };
        Ok(found.as_bytes().to_vec())
    }

    fn set_file_attributes(&self, cx: &Context<'_>, ino: Ino, input: &[u8]) -> Result<Vec<u8>> {
        let asked = FileAttributes::read_from_bytes(input).map_err(|_| Errno::EINVAL)?;
        let known = FLAGS
            .iter()
            .fold(HAS_ATTRIBUTES, |bits, (_, bit)| bits | bit);
        if asked.flags & !known != 0 || asked.extent_size != 0 || asked.copy_extent_size != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let set = FLAGS.iter().filter(|(_, bit)| asked.flags & bit != 0);
        let flags = set.map(|(flag, _)| *flag).collect();
        self.change_flags(cx, ino, flags, Some(asked.project))
    }

    fn change_flags(
        &self,
        cx: &Context<'_>,
        ino: Ino,
        flags: FileFlags,
        project: Option<u32>,
    ) -> Result<Vec<u8>> {
        let node = self.fs.node(ino)?;
        self.fs
            .set_flags(&caller(cx), &node, Some(flags), project)?;
        // The reply carries no attributes and `ctime` changed, so the kernel must drop those that
        // it has.
        self.notifier.invalidate_inode(ino, -1, 0);
        self.notifier.flush();
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_those_of_the_kernel() {
        assert_eq!([GET_FLAGS, SET_FLAGS], [0x8008_6601, 0x4008_6602]);
        let attributes = [GET_ATTRIBUTES, SET_ATTRIBUTES];
        assert_eq!(attributes, [0x801c_581f, 0x401c_5820]);
    }
}
