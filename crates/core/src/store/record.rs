//! Inodes and names as a store keeps them, and the data of an inode beside its record.

use super::StoredSpace;
use crate::types::{FileFlags, FileType, Ino, Time};

/// An inode as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeRecord {
    /// Number.
    pub ino: Ino,
    /// Type; never changes.
    pub kind: FileType,
    /// Permission, set-id and sticky bits.
    pub perm: u16,
    /// Number of names; 0 for an orphan that is still open.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number.
    pub rdev: u64,
    /// Length in bytes (of a symbolic link: of its target).
    pub size: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of content.
    pub mtime: Time,
    /// Last change of the inode.
    pub ctime: Time,
    /// Time of creation.
    pub btime: Time,
    /// A directory's parent (itself for the root); for others a directory with a name of the inode.
    pub parent: Ino,
    /// May the inode have extended attributes, or space behind its end? If not, the core does not
    /// ask the store for them.
    pub xattrs: bool,
    /// The space that a regular file takes, in a record that comes from the store: the sum of the
    /// runs of [`Store::next_space`](super::Store::next_space). The core leaves it meaningless in
    /// records for the store.
    pub space: StoredSpace,
    /// File flags. An unknown bit is corruption.
    pub flags: FileFlags,
    /// The project; 0 for no project.
    pub project: u32,
}

/// A name of a directory as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRecord {
    /// The name's bytes.
    pub name: Box<[u8]>,
    /// Position: unique in the directory, growing with creation, never reused.
    pub cookie: u64,
    /// The inode it leads to.
    pub ino: Ino,
    /// That inode's type.
    pub kind: FileType,
}

/// Extended attributes: full names and values.
pub type XattrList = Vec<(Box<[u8]>, Box<[u8]>)>;

/// The data of an inode beside its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// The target of a symbolic link.
    pub target: Option<Box<[u8]>>,
    /// Extended attributes.
    pub xattrs: XattrList,
}
