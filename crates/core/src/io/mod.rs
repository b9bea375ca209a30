//! The content of regular files.
//!
//! *Locking.* A file's pages are locked over a change, size and times included; the size changes
//! after the pages. A read takes no lock and sees a change whole or not at all; only when changes
//! come in its way again and again it takes the lock. Copies between two files lock them by
//! number.

pub(crate) mod bring;
mod copy;
mod fallocate;
mod read;
mod resize;
mod seek;
mod write;

use holdfast_cache::Pages;

use crate::open::OpenFile;
use crate::types::{Errno, Result};

/// Largest size of a file, in bytes: offsets are signed.
const SIZE_MAX: u64 = i64::MAX as u64;

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
