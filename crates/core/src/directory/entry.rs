//! The target of a name, and its position in a listing.

use crate::types::{Errno, FileType, Ino};
use holdfast_dirindex::{InsertError, Item};

/// Cookies 1 and 2 belong to `.` and `..`.
pub(crate) const FIRST_COOKIE: u64 = 3;

/// All cookies are below this one.
pub(crate) const COOKIE_END: u64 = 1 << 63;

/// The target of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Position in a listing.
    pub(crate) cookie: u64,
    /// Inode number.
    pub(crate) ino: Ino,
    /// The inode's type.
    pub(crate) kind: FileType,
}

impl Entry {
    pub(super) fn of(item: Item<'_>) -> Self {
        let (value, tag) = item.payload();
        Self::new(item.order(), value, tag)
    }

    pub(super) fn new(cookie: u64, value: u64, tag: u8) -> Self {
        Self {
            cookie,
            ino: Ino(value),
            // Every tag in the catalog is a type's.
            kind: FileType::from_dirent(tag).unwrap_or(FileType::Regular),
        }
    }
}

pub(super) fn refused(error: InsertError) -> Errno {
    match error {
        InsertError::Full => Errno::ENOSPC,
        _ => Errno::EUCLEAN,
    }
}
