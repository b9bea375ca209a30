//! Changes that a client asks for.

use super::{Content, Extent, Node};
use holdfast_core::store::{Version, XattrList};
use holdfast_types::{FileFlags, FileType, Ino, RenameFlags, SetTime, Time, XattrSet};

/// A change, which is one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Creates an inode with a name. `EEXIST`; `ENOENT`: the directory has no name any more;
    /// `ENOTDIR`; `ESTALE`: the directory does not exist; `EMLINK`.
    Make {
        /// The directory.
        dir: Ino,
        /// The name.
        name: Box<[u8]>,
        /// The inode.
        new: NewInode,
    },
    /// Creates a regular file without a name. The session has to [know](super::Beat::knows) it.
    MakeUnnamed {
        /// The directory that the caller named: its number is the file's `parent`.
        dir: Ino,
        /// The inode.
        new: NewInode,
    },
    /// Adds a name to an inode; the directory becomes its `parent`. `EEXIST`, `ENOENT`, `EMLINK`;
    /// `EPERM` for a directory. `ENOENT` also for an inode that lost its last name, but not for one
    /// that never had a name.
    Link {
        /// The inode.
        ino: Ino,
        /// The directory.
        dir: Ino,
        /// The name.
        name: Box<[u8]>,
        /// A dealt number: the name's cookie.
        cookie: u64,
    },
    /// Removes a name. `ENOENT`, `ENOTDIR`, `EISDIR`, `ENOTEMPTY`.
    Remove {
        /// The directory.
        dir: Ino,
        /// The name.
        name: Box<[u8]>,
        /// Is it the name of an empty directory, or of anything else?
        directory: bool,
    },
    /// Moves a name, like renameat2(2). `ENOENT`, `EEXIST`, `EINVAL` for a directory moved below
    /// itself, `ENOTDIR`, `EISDIR`, `ENOTEMPTY`. Two names of one inode: success, and nothing
    /// happens.
    Rename {
        /// Directory and name.
        from: (Ino, Box<[u8]>),
        /// Directory and name.
        to: (Ino, Box<[u8]>),
        /// The flags.
        flags: RenameFlags,
        /// A dealt number: the moved name's cookie, and with an exchange the next is the other's.
        cookie: u64,
        /// The inode of the whiteout that is left behind, with that flag.
        whiteout: Option<NewInode>,
    },
    /// Changes attributes.
    SetAttributes {
        /// The inode.
        ino: Ino,
        /// The changes.
        change: Change,
    },
    /// Sets an extended attribute, or with `value: None` only the permission bits that its access
    /// control list implies, and removes the attribute. `EEXIST`, `ENODATA` by `how`.
    SetXattr {
        /// The inode.
        ino: Ino,
        /// The full name.
        name: Box<[u8]>,
        /// The value.
        value: Option<Box<[u8]>>,
        /// Must it exist, or must it not?
        how: XattrSet,
        /// New permission bits.
        perm: Option<u16>,
    },
    /// Removes an extended attribute. `ENODATA`.
    RemoveXattr {
        /// The inode.
        ino: Ino,
        /// The full name.
        name: Box<[u8]>,
    },
    /// Changes the content of a file, and attributes that waited for it.
    Flush(Flush),
}

/// An inode that is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInode {
    /// A dealt number, which is the name's cookie too.
    pub ino: Ino,
    /// Type.
    pub kind: FileType,
    /// Permission bits.
    pub perm: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number.
    pub rdev: u64,
    /// Flags.
    pub flags: FileFlags,
    /// Project.
    pub project: u32,
    /// The target of a symbolic link.
    pub target: Option<Box<[u8]>>,
    /// Extended attributes: access control lists.
    pub xattrs: XattrList,
}

impl NewInode {
    /// An inode of user 0 without permission bits and attributes.
    #[must_use]
    pub fn new(ino: Ino, kind: FileType) -> Self {
        Self {
            ino,
            kind,
            perm: 0,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: FileFlags::empty(),
            project: 0,
            target: None,
            xattrs: Vec::new(),
        }
    }
}

/// Changes of attributes; with none, only `ctime` changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Permission bits.
    pub perm: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of access.
    pub atime: Option<SetTime>,
    /// Time of modification.
    pub mtime: Option<SetTime>,
    /// Flags.
    pub flags: Option<FileFlags>,
    /// Project.
    pub project: Option<u32>,
    /// The access control list that belongs to the permission bits.
    pub acl: Option<Box<[u8]>>,
    /// Are file capabilities removed, if there are any? A change of owner or group of anything but
    /// a directory removes them as well.
    pub drops_capability: bool,
}

/// Makes the content of a file what a client wrote. `ESTALE`: the file does not exist. `EINVAL`:
/// ranges that are not whole pages, overlap, or are not in their objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flush {
    /// The file.
    pub ino: Ino,
    /// The generation of the content that `edit` was made from. 0: a [`Edit::Map`] that does not
    /// depend on older bytes.
    pub generation: u64,
    /// The content.
    pub edit: Edit,
    /// The length. `None` stays.
    pub size: Option<Size>,
    /// The client's reading of the database's clock at its last change, for `ctime`, and for
    /// `mtime` where `change` does not set it. The database takes a later one if it has to. `None`:
    /// the bytes only move, and no time changes.
    pub changed: Option<Time>,
    /// Attributes that were changed while the file was dirty.
    pub change: Change,
}

/// A change of the length of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// At least so long: others may have written further.
    AtLeast(u64),
    /// Exactly so long: it was truncated.
    Exactly(u64),
}

/// A change of the content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The content stays. With [`Size::Exactly`], space beyond the new end is freed.
    None,
    /// The content becomes this. [Refused](Answer::Refused) if the generation is another now, or an
    /// object that is neither new nor in use is to be mapped.
    Replace {
        /// The content.
        content: Content,
        /// New objects among it, with their lengths. Several files may name one object as new.
        objects: Vec<(u64, u64)>,
    },
    /// Ranges of a file with extents change. [Refused](Answer::Refused) if the file has a body now,
    /// if the generation is another now and [`Flush::generation`] is not 0, or if an object that is
    /// neither new nor in use is to be mapped. `cut` comes first, then `clear`, then `add`.
    Map {
        /// Everything from this byte on becomes a hole.
        cut: Option<u64>,
        /// Offset and length of ranges that become holes; multiples of 4,096.
        clear: Vec<(u64, u64)>,
        /// Ranges that get new bytes, and replace all pages that they touch.
        add: Vec<Extent>,
        /// New objects among them, with their lengths.
        objects: Vec<(u64, u64)>,
    },
}

/// The answer to a request that was not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was performed.
    Done {
        /// The inode of the name that was made, moved or removed.
        entry: Option<(Ino, FileType)>,
        /// For a rename, the inode that the second name led to before.
        other: Option<(Ino, FileType)>,
        /// All inodes that it changed, each once, with the version before. A new inode has none.
        touched: Vec<(Option<Version>, Node)>,
    },
    /// The content is another than the flush was made from, and nothing happened. The client reads
    /// the content again, and makes another flush.
    Refused,
}
