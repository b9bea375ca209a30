//! The system call here that has no safe wrapper.
#![expect(unsafe_code, reason = "this ioctl has no safe wrapper")]

use rustix::{
    io::Errno as Code,
    ioctl::{Opcode, Updater, ioctl, opcode},
};
use std::os::fd::AsFd;

const QUERY: Opcode = opcode::read_write::<Query>(b'f', 17);
const SHARED: u64 = 0x08;
const COVERING_OR_NEXT: u64 = 0x10;
const FILE_BACKED: u64 = 0x20;

/// `struct procmap_query` of Linux 6.11.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    /// Zero: neither the name nor the build id is asked for, and the kernel writes to no address.
    sizes: [u32; 2],
    addresses: [u64; 2],
}

/// A part of a process's address space that is a file's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    /// The inode's number in its file system.
    pub(super) inode: u64,
    /// The first address behind it.
    pub(super) end: u64,
}

/// The first shared mapping of a file that ends behind `address`, in the process whose `maps` file
/// this is; `None` if there is none.
///
/// # Errors
/// `ENOTTY` before Linux 6.11.
pub(super) fn shared_mapping(maps: impl AsFd, address: u64) -> Result<Option<Mapping>, Code> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        flags: SHARED | COVERING_OR_NEXT | FILE_BACKED,
        address,
        ..Query::default()
    };
    // SAFETY: `QUERY` is the ioctl that takes this structure, and the kernel leaves valid values in its fields.
    let update = unsafe { Updater::<QUERY, Query>::new(&mut query) };
    // SAFETY: the kernel reads and writes `size` bytes of the structure, which is as large and lives until the call
    // returns, and nothing at `addresses`, since both `sizes` are 0.
    let asked = unsafe { ioctl(maps, update) };
    match asked {
        Ok(()) => Ok(Some(Mapping {
            inode: query.inode,
            end: query.end,
        })),
        Err(Code::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
