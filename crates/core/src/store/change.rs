//! The typed changes of which a batch, one operation, consists.

use super::InodeRecord;
use crate::types::{FileType, Ino};

/// One typed change. A batch of changes is one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A new inode; a symbolic link has its target here.
    Create {
        /// All its attributes.
        inode: InodeRecord,
        /// The target of a symbolic link.
        target: Option<&'a [u8]>,
    },
    /// Replaces the attributes of an inode.
    Attributes {
        /// All of them.
        inode: InodeRecord,
    },
    /// Adds a name to a directory.
    Enter {
        /// The directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// Its cookie.
        cookie: u64,
        /// Its inode.
        ino: Ino,
        /// That inode's type.
        kind: FileType,
    },
    /// Removes a name from a directory.
    Leave {
        /// The directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// The cookie that it had.
        cookie: u64,
    },
    /// Writes bytes to a regular file.
    Write {
        /// The file.
        ino: Ino,
        /// Where they begin.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// Sets the size of a file: what is beyond it is freed, new bytes read as zeros.
    Truncate {
        /// The file.
        ino: Ino,
        /// Its length.
        size: u64,
    },
    /// Makes a range a hole, or (`keep`) zeros that keep their space.
    Zero {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// Does the range keep its space, or get it?
        keep: bool,
    },
    /// Allocates space for a range; its content stays.
    Allocate {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Removes a page-aligned range; what follows moves down.
    Collapse {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Inserts a page-aligned hole; what follows moves up.
    Insert {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Sets an extended attribute, or (`None`) removes it.
    Xattr {
        /// The inode.
        ino: Ino,
        /// Full name with its namespace.
        name: &'a [u8],
        /// Value.
        value: Option<&'a [u8]>,
    },
    /// Frees an inode without names, and its content.
    Free {
        /// The inode.
        ino: Ino,
    },
}

/// The subject of a batch of changes, as the options `sync` and `dirsync` distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Names are added or removed.
    Names,
    /// Attributes and content change.
    Inodes,
}

impl Scope {
    pub(crate) fn of(batch: &[Change<'_>]) -> Self {
        let is_name =
            |change: &Change<'_>| matches!(change, Change::Enter { .. } | Change::Leave { .. });
        match batch.iter().any(is_name) {
            true => Self::Names,
            false => Self::Inodes,
        }
    }
}
