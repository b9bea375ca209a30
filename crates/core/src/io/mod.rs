//! The content of regular files.
//!
//! *Locking.* A file's pages are locked over a change, size and times included; the size changes
//! after the pages. A read takes no lock and sees a change whole or not at all; only when changes
//! come in its way again and again it takes the lock. Copies between two files lock them by
//! number.

pub(crate) mod bring;
mod copy;
mod fallocate;
mod map;
mod read;
mod resize;
mod seek;
mod write;

use holdfast_cache::Pages;

use crate::file_system::Core;
use crate::open::OpenFile;
use crate::types::{Errno, Result};

/// Largest size of a file, in bytes: offsets are signed.
const SIZE_MAX: u64 = i64::MAX as u64;

impl Core {
    /// Pages of a file that the store has no page for, and needs one when the file gets another length: the
    /// first one of a [small](crate::store::Guarantees::small) file.
    fn outgrown(&self, old: u64, new: u64) -> u64 {
        u64::from(0 < old && old <= self.small && self.small < new)
    }
}

/// Is `offset..offset + len` within what offsets can say?
fn check_range(offset: u64, len: usize) -> Result<()> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= SIZE_MAX => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// The content behind a file opened for reading.
fn readable(file: &OpenFile) -> Result<&Pages> {
    if !file.flags().readable() {
        return Err(Errno::EBADF);
    }
    file.node().inode().regular()
}

/// The content behind a file opened for writing.
fn writable(file: &OpenFile) -> Result<&Pages> {
    if !file.flags().writable() {
        return Err(Errno::EBADF);
    }
    file.node().inode().regular()
}
