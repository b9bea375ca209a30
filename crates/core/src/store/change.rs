//! What an operation changes, in the core's words: a batch of these is one operation.

use super::InodeRecord;
use crate::types::{FileType, Ino};

/// One typed change. A batch of them is one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A new inode; a symbolic link brings its target.
    Create {
        /// All its attributes.
        inode: InodeRecord,
        /// The target of a symbolic link.
        target: Option<&'a [u8]>,
    },
    /// These are an inode's attributes from now on.
    Attributes {
        /// All of them.
        inode: InodeRecord,
    },
    /// A name appears.
    Enter {
        /// In this directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// Its position.
        cookie: u64,
        /// Its inode.
        ino: Ino,
        /// That inode's type.
        kind: FileType,
    },
    /// A name disappears.
    Leave {
        /// From this directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// The position it had.
        cookie: u64,
    },
    /// Bytes of a regular file.
    Write {
        /// The file.
        ino: Ino,
        /// Where they begin.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// A new length: what lies beyond is gone, what is new reads as zeros.
    Truncate {
        /// The file.
        ino: Ino,
        /// Its length.
        size: u64,
    },
    /// A range becomes a hole, or (`keep`) zeros that keep their space.
    Zero {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// Is the space kept (or taken)?
        keep: bool,
    },
    /// Space is taken for a range; bytes that exist stay.
    Allocate {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// A range (page-aligned) is removed and what follows moves down.
    Collapse {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// A hole (page-aligned) is opened and what follows moves up.
    Insert {
        /// The file.
        ino: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// An extended attribute gets a value, or (`None`) goes.
    Xattr {
        /// The inode.
        ino: Ino,
        /// Full name with its namespace.
        name: &'a [u8],
        /// Value.
        value: Option<&'a [u8]>,
    },
    /// An inode without names is no longer in use: it and its content go.
    Free {
        /// The inode.
        ino: Ino,
    },
}
