//! How a store is changed that is written through: the store first, memory after it.

use std::io::IoSlice;
use std::time::Instant;

use super::InodeRecord;
use crate::types::{
    Caller, Fallocate, FileFlags, FileType, Ino, RenameFlags, Result, SetTime, Time, XattrSet,
};

/// A store that is asked to change something, and asking is doing: because others change it as well, or because it has rules of
/// its own. It also has the ability [`Shared`](super::Shared), and a root.
///
/// *Answers.* An error is an answer (`EEXIST`, `ENOSPC`, `EDQUOT`, `EACCES`, `EROFS`, `EXDEV`, ...): nothing happened, it is told to the
/// caller, and the next operation is asked for as if there had been none. What was answered with success is the store's: nothing of
/// it is in memory alone.
///
/// *Permissions* were checked before, by what the core knows; a store that has permissions of its own checks them for the caller.
///
/// *Files without names.* An inode that lost its last name by an operation lives on as long as the core
/// [knows](super::Shared::forgotten) it.
pub trait Through: Send + Sync + 'static {
    /// Does what a caller asks for. May wait; nothing is locked but the content of the file that an operation changes.
    ///
    /// # Errors
    /// What the store answers: then nothing happened, but for a write of which a part was written (it tells how much).
    fn perform(&self, caller: &Caller, operation: &Operation<'_>) -> Result<Done>;

    /// A caller opens an inode, a regular file for writing if `writes` says so. From now on, and until it was
    /// [closed](Self::close) as often, it is the same inode whatever becomes of its names, and a file that is open
    /// for writing can be written whatever becomes of its permissions.
    ///
    /// The core opens for reading only if others may change the store.
    ///
    /// # Errors
    /// `ESTALE`: it has gone. For writing also `EACCES`, `EROFS`; `ENFILE` if too many are open.
    fn open(&self, caller: &Caller, ino: Ino, writes: bool) -> Result<()>;

    /// One opening ends.
    fn close(&self, ino: Ino, writes: bool);
}

/// What a store that is written through is asked to do.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// Makes an inode with a name, if that is free.
    Make {
        /// In this directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// What it is to be.
        new: New<'a>,
        /// Is it [opened](Through::open) as well, by the same step? It is a regular file then.
        open: bool,
    },
    /// Makes a regular file without a name, and [opens](Through::open) it.
    MakeUnnamed {
        /// In the file system of this directory, with what it has for new files.
        dir: Ino,
        /// What it is to be.
        new: New<'a>,
        /// May it get a name?
        linkable: bool,
    },
    /// Gives an inode one more name, if that is free.
    Link {
        /// The inode.
        ino: Ino,
        /// In this directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
    },
    /// Removes a name.
    Remove {
        /// From this directory.
        dir: Ino,
        /// The name.
        name: &'a [u8],
        /// Is it that of an empty directory (`ENOTDIR`, `ENOTEMPTY`), or of anything else (`EISDIR`)?
        directory: bool,
    },
    /// Moves a name, as renameat2(2).
    Rename {
        /// Directory and name.
        from: (Ino, &'a [u8]),
        /// Directory and name.
        to: (Ino, &'a [u8]),
        /// How.
        flags: RenameFlags,
    },
    /// Changes attributes; with none given the inode counts as changed.
    SetAttributes {
        /// The inode.
        ino: Ino,
        /// What changes.
        set: Attributes<'a>,
    },
    /// Sets all file flags of an inode, or its project (`EOPNOTSUPP` for what this store does not tell of an inode). What is not given stays.
    SetFlags {
        /// The inode.
        ino: Ino,
        /// All that it is to have of those that a record tells.
        flags: Option<FileFlags>,
        /// A number.
        project: Option<u32>,
    },
    /// Gives a regular file another length; what is new reads as zeros.
    Resize {
        /// The file.
        ino: Ino,
        /// Its length.
        size: u64,
    },
    /// Writes bytes to a regular file that is [open](Through::open), one buffer behind the other.
    Write {
        /// The file.
        ino: Ino,
        /// Where. `None`: at the end, whatever others do.
        offset: Option<u64>,
        /// The bytes.
        bufs: &'a [IoSlice<'a>],
    },
    /// Allocates, frees, zeroes, removes or inserts a range of a regular file that is [open](Through::open), as fallocate(2).
    Allocate {
        /// The file.
        ino: Ino,
        /// What is done.
        mode: Fallocate,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Copies bytes between regular files, of which the second is [open](Through::open), or fewer than asked for. A store that
    /// does not copy (`EOPNOTSUPP`, `EXDEV`) is read and written instead.
    Copy {
        /// File and first byte.
        from: (Ino, u64),
        /// File and first byte.
        to: (Ino, u64),
        /// Number of bytes.
        len: u64,
    },
    /// Gives an extended attribute a value.
    SetXattr {
        /// The inode.
        ino: Ino,
        /// Full name with its namespace.
        name: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// Must it be there, or not?
        how: XattrSet,
        /// The permission bits that an access control list brings along, by the core's rules.
        perm: Option<u16>,
        /// `false`: by those rules it says no more than these bits, and they are all that is kept.
        kept: bool,
    },
    /// Removes an extended attribute (`ENODATA`).
    RemoveXattr {
        /// The inode.
        ino: Ino,
        /// Full name with its namespace.
        name: &'a [u8],
    },
    /// Makes an inode durable.
    Sync {
        /// The inode.
        ino: Ino,
        /// Only what reading it back needs?
        data_only: bool,
    },
    /// A descriptor of a file that is [open](Through::open) is closed: what a store put off and cannot do is told now.
    Flush {
        /// The file.
        ino: Ino,
    },
}

impl Operation<'_> {
    /// The directories of which it changes names.
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

/// An inode that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// Type.
    pub kind: FileType,
    /// The permission bits that were asked for. A store with rules of its own goes by these and the caller's umask.
    pub asked: u16,
    /// The permission bits that it has by the core's rules: umask, default access control list, set-group-id.
    pub perm: u16,
    /// The group that it has by those rules.
    pub gid: u32,
    /// The access control lists that it has by those rules: for access, and for what is made in it.
    pub acls: [Option<&'a [u8]>; 2],
    /// Device number.
    pub rdev: u64,
    /// The target of a symbolic link.
    pub target: Option<&'a [u8]>,
}

/// Attributes that change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Permission bits: those that were asked for, or what is left of them with another owner.
    pub perm: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of access.
    pub atime: Option<SetTime>,
    /// Time of modification.
    pub mtime: Option<SetTime>,
    /// The access control list that goes with the permission bits, by the core's rules.
    pub acl: Option<&'a [u8]>,
}

/// What tells whether an inode is as it was: as far as the times of a store show.
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
    /// That of a record.
    #[must_use]
    pub const fn of(record: &InodeRecord) -> Self {
        Self {
            size: record.size,
            mtime: record.mtime,
            ctime: record.ctime,
        }
    }
}

/// An inode that an operation touched (NFS calls the two together weak cache consistency data).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// What it was directly before. `None`: nobody knows, so that nothing stands of what is in memory.
    pub before: Option<Version>,
    /// As it is now.
    pub record: InodeRecord,
}

/// What an operation did.
///
/// *Order.* What others do with the same inodes at the same time may be in the records or not, but all is in them that had been
/// done when `at` was read.
#[derive(Clone, Debug)]
pub struct Done {
    /// A time, by the store's [clock](super::Shared::now): after the change, and before the records were read.
    pub at: Instant,
    /// What the name leads to that was made or moved, or led to that was removed.
    pub entry: Option<(Ino, FileType)>,
    /// Of a rename what its second name led to before.
    pub other: Option<(Ino, FileType)>,
    /// Those inodes that were touched and are told: directories, and what their names led to. The store is asked for the others.
    pub touched: Vec<Touched>,
    /// Of a write or a copy the bytes that were written.
    pub count: u64,
    /// Of a write where it began.
    pub start: u64,
}

impl Done {
    /// Nothing is told.
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

    /// What is told of an inode.
    #[must_use]
    pub fn of(&self, ino: Ino) -> Option<&Touched> {
        self.touched.iter().find(|it| it.record.ino == ino)
    }
}
