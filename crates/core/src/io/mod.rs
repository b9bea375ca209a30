//! The content of regular files.
//!
//! *Locking.* A file's `pages` lock is held for reading over a read and for writing over a
//! change, sizes and times included: a read sees a write whole or not at all. Copies between two
//! files lock them by number.

mod copy;
mod fallocate;
mod read;
mod resize;
mod seek;
mod write;

use crate::inode::RegularBody;
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
fn readable(file: &OpenFile) -> Result<&RegularBody> {
    if !file.flags().readable() {
        return Err(Errno::EBADF);
    }
    file.node().inode().regular()
}

/// The content behind a file opened for writing.
fn writable(file: &OpenFile) -> Result<&RegularBody> {
    if !file.flags().writable() {
        return Err(Errno::EBADF);
    }
    file.node().inode().regular()
}
