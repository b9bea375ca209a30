//! What an operation on an open file checks first.

use crate::open_file::OpenFile;
use crate::types::{Errno, Result};
use holdfast_cache::Pages;

/// Largest size of a file, in bytes: offsets are signed.
pub(crate) const SIZE_MAX: u64 = i64::MAX as u64;

/// Is `offset..offset + len` within the range of offsets?
pub(crate) fn check_range(offset: u64, len: usize) -> Result<()> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= SIZE_MAX => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// The content of a file opened for reading.
pub(crate) fn readable(file: &OpenFile) -> Result<&Pages> {
    if !file.flags().readable() {
        return Err(Errno::EBADF);
    }
    file.node().inode().regular()
}

/// The content of a file opened for writing.
pub(crate) fn writable(file: &OpenFile) -> Result<&Pages> {
    if !file.flags().writable() {
        return Err(Errno::EBADF);
    }
    file.node().inode().regular()
}
