//! The write-through way of changing a store: the store first, memory after it.

use std::io::IoSlice;
use std::time::Instant;

use super::InodeRecord;
use crate::types::{
    Caller, Fallocate, FileFlags, FileType, Ino, RenameFlags, Result, SetTime, Time, XattrSet,
};

/// A store that performs the operations itself, because others change it as well, or because it has
/// rules of its own. It also has the ability [`Shared`](super::Shared), and a root.
///
/// *Answers.* An error (`EEXIST`, `ENOSPC`, `EDQUOT`, `EACCES`, `EROFS`, `EXDEV`, ...) means that
/// nothing happened. The core returns it to the caller, and later operations are not affected. The
/// effect of a success is in every later answer of the store. What a crash may take of it is what
/// the store's guarantees say.
///
/// *Permissions* were checked by the core with cached attributes. A store that has permissions of
/// its own checks them for the caller.
///
/// *Files without names.* An inode that lost its last name by an operation lives on as long as the
/// core [knows](super::Shared::forgotten) it.
pub trait Through: Send + Sync + 'static {
    /// Performs an operation of a caller. May block; the only lock held is the content lock of the
    /// file that it changes.
    ///
    /// # Errors
    /// Those of the store. Nothing happened then, except that a write of which a part succeeded
    /// reports its length.
    fn perform(&self, caller: &Caller, operation: &Operation<'_>) -> Result<Done>;
}

/// An operation of a store that is written through.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// Creates an inode with a name, or fails with `EEXIST`. A new directory is empty, except in a
    /// store with files that [have no size](super::Shared::has_no_size).
    Make {
        /// The directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// The new inode.
        new: New<'a>,
        /// Is it [opened](super::Store::open_inode) as well, atomically? Then it is a regular file.
        open: bool,
    },
    /// Creates a regular file without a name, and [opens](super::Store::open_inode) it.
    MakeUnnamed {
        /// A directory of the same file system, with the defaults for its new files.
        dir: Ino,
        /// The new inode.
        new: New<'a>,
        /// May it get a name?
        linkable: bool,
    },
    /// Adds a name to an inode, or fails with `EEXIST`.
    Link {
        /// The inode.
        ino: Ino,
        /// The directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
    },
    /// Removes a name.
    Remove {
        /// The directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// Is it the name of an empty directory (`ENOTDIR`, `ENOTEMPTY`), or of anything else
        /// (`EISDIR`)?
        directory: bool,
    },
    /// Moves a name, like renameat2(2).
    Rename {
        /// Directory and name.
        from: (Ino, &'a [u8]),
        /// Directory and name.
        to: (Ino, &'a [u8]),
        /// The flags.
        flags: RenameFlags,
        /// The inode that is left behind, with that flag.
        whiteout: Option<New<'a>>,
    },
    /// Changes attributes; with none given, only `ctime` changes.
    SetAttributes {
        /// The inode.
        ino: Ino,
        /// The changes.
        set: Attributes<'a>,
    },
    /// Sets all file flags of an inode, or its project. What is `None` stays. `EOPNOTSUPP` for what
    /// the records of this store do not contain.
    SetFlags {
        /// The inode.
        ino: Ino,
        /// The new value of all flags that a record contains.
        flags: Option<FileFlags>,
        /// The number of the project.
        project: Option<u32>,
    },
    /// Sets the size of a regular file; new bytes read as zeros.
    Resize {
        /// The file.
        ino: Ino,
        /// Its length.
        size: u64,
        /// Do its times change, even if the length stays and the file takes no space?
        modified: bool,
    },
    /// Writes buffers, one after the other, to a regular file that is
    /// [open](super::Store::open_inode).
    Write {
        /// The file.
        ino: Ino,
        /// The first byte. `None`: atomically at the end.
        offset: Option<u64>,
        /// The bytes.
        bufs: &'a [IoSlice<'a>],
    },
    /// Allocates, frees, zeroes, removes or inserts a range of a regular file that is
    /// [open](super::Store::open_inode), like fallocate(2).
    Allocate {
        /// The file.
        ino: Ino,
        /// The kind of change.
        mode: Fallocate,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Copies at most `len` bytes between regular files, of which the second is
    /// [open](super::Store::open_inode). If the store does not copy (`EOPNOTSUPP`, `EXDEV`), the
    /// core reads and writes.
    Copy {
        /// File and first byte.
        from: (Ino, u64),
        /// File and first byte.
        to: (Ino, u64),
        /// Number of bytes.
        len: u64,
    },
    /// Sets an extended attribute.
    SetXattr {
        /// The inode.
        ino: Ino,
        /// Full name with its namespace.
        name: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// Must the attribute exist, or must it not?
        how: XattrSet,
        /// The permission bits that an access control list implies, by the core's rules.
        perm: Option<u16>,
        /// `false`: the list is equivalent to these bits, and only they are stored.
        kept: bool,
    },
    /// Removes an extended attribute (`ENODATA`).
    RemoveXattr {
        /// The inode.
        ino: Ino,
        /// Full name with its namespace.
        name: &'a [u8],
        /// The permission bits without an access control list, by the core's rules.
        perm: Option<u16>,
    },
}

impl Operation<'_> {
    /// The directories with names that it changes.
    #[must_use]
    pub fn directories(&self) -> [Option<Ino>; 2] {
        match *self {
            Self::Make { dir, .. } | Self::Link { dir, .. } | Self::Remove { dir, .. } => {
                [Some(dir), None]
            }
            Self::Rename {
                from: (from, _),
                to: (to, _),
                ..
            } => [Some(from), (to != from).then_some(to)],
            _ => [None, None],
        }
    }
}

/// The attributes of a new inode.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// Type.
    pub kind: FileType,
    /// The permission bits that the caller asked for. A store with rules of its own combines them
    /// with the caller's umask.
    pub asked: u16,
    /// The permission bits by the core's rules: umask, default access control list, set-group-id.
    pub perm: u16,
    /// The group by those rules.
    pub gid: u32,
    /// The access control lists by those rules: for access, and the default list.
    pub acls: [Option<&'a [u8]>; 2],
    /// The file flags that it inherits.
    pub flags: FileFlags,
    /// The project that it inherits; 0 for no project.
    pub project: u32,
    /// Device number.
    pub rdev: u64,
    /// The target of a symbolic link.
    pub target: Option<&'a [u8]>,
}

/// Changes of attributes. A change of owner or group removes file capabilities
/// (`security.capability`) of anything but a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Permission bits: as requested, or the rest of them after a change of owner.
    pub perm: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of access.
    pub atime: Option<SetTime>,
    /// Time of modification.
    pub mtime: Option<SetTime>,
    /// The access control list that belongs to the permission bits, by the core's rules.
    pub acl: Option<&'a [u8]>,
    /// Are file capabilities removed, if there are any?
    pub drops_capability: bool,
}

/// Identifies a state of an inode, as far as the times of a store show changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Length in bytes.
    pub size: u64,
    /// Last change of content.
    pub mtime: Time,
    /// Last change of the inode.
    pub ctime: Time,
}

impl Version {
    /// The version of a record.
    #[must_use]
    pub const fn of(record: &InodeRecord) -> Self {
        Self {
            size: record.size,
            mtime: record.mtime,
            ctime: record.ctime,
        }
    }
}

/// An inode that an operation changed, before and after (NFS calls the pair weak cache consistency
/// data).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The version directly before. `None`: unknown, so that all cached data of the inode is
    /// invalid.
    pub before: Option<Version>,
    /// The record after the operation.
    pub record: InodeRecord,
}

/// The result of an operation.
///
/// *Order.* The records contain every change that was complete when `at` was read. Later concurrent
/// changes by others may be in them or not.
#[derive(Clone, Debug)]
pub struct Done {
    /// A time of the store's [clock](super::Shared::now), read after the change and before the
    /// records.
    pub at: Instant,
    /// The inode of the name that was made, moved or removed.
    pub entry: Option<(Ino, FileType)>,
    /// For a rename, the inode that the second name led to before.
    pub other: Option<(Ino, FileType)>,
    /// The changed inodes that the answer contains: directories, and the inodes of their names. The
    /// core loads the others.
    pub touched: Vec<Touched>,
    /// For a write or a copy, the number of bytes written.
    pub count: u64,
    /// For a write, its offset.
    pub start: u64,
}

impl Done {
    /// A result that contains nothing.
    #[must_use]
    pub const fn at(at: Instant) -> Self {
        Self {
            at,
            entry: None,
            other: None,
            touched: Vec::new(),
            count: 0,
            start: 0,
        }
    }

    /// What the result contains of an inode.
    #[must_use]
    pub fn of(&self, ino: Ino) -> Option<&Touched> {
        self.touched.iter().find(|it| it.record.ino == ino)
    }
}
