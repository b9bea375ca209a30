//! The names in an open directory, by getdents64(2).

use holdfast_core::types::{FileType, Result};
use rustix::fs::RawDir;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use crate::sys::errno;

/// Buffer of getdents64(2).
pub(crate) const BUFFER: usize = 256 << 10;

/// A name in a listing.
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) number: u64,
    /// `None`: unknown.
    pub(crate) kind: Option<FileType>,
}

/// Calls `visit` with the remaining names of an open directory, without `.` and `..`, until it
/// returns false.
///
/// # Errors
/// Those of getdents64(2).
pub(crate) fn each(dir: BorrowedFd<'_>, visit: &mut dyn FnMut(&Listed<'_>) -> bool) -> Result<()> {
    let mut buffer: Vec<MaybeUninit<u8>> = vec![MaybeUninit::uninit(); BUFFER];
    while one_buffer(dir, &mut buffer, visit)? {}
    Ok(())
}

/// The same for one buffer. False: that was the last one.
pub(crate) fn one_buffer(
    dir: BorrowedFd<'_>,
    buffer: &mut [MaybeUninit<u8>],
    visit: &mut dyn FnMut(&Listed<'_>) -> bool,
) -> Result<bool> {
    let mut names = RawDir::new(dir, buffer);
    while let Some(entry) = names.next() {
        let entry = entry.map_err(errno)?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            let listed = Listed {
                name,
                number: entry.ino(),
                kind: FileType::from_mode(entry.file_type().as_raw_mode()),
            };
            if !visit(&listed) {
                return Ok(false);
            }
        }
        if names.is_buffer_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
