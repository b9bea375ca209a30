use bitflags::bitflags;

use crate::FileType;

bitflags! {
    /// Flags of open(2), with Linux's numbers for this machine.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct OpenFlags: i32 {
        /// Write only.
        const WRITE_ONLY = libc::O_WRONLY;
        /// Read and write.
        const READ_WRITE = libc::O_RDWR;
        /// Create if absent.
        const CREATE = libc::O_CREAT;
        /// Fail if present.
        const EXCLUSIVE = libc::O_EXCL;
        /// Truncate to nothing.
        const TRUNCATE = libc::O_TRUNC;
        /// Every write goes to the end.
        const APPEND = libc::O_APPEND;
        /// Do not wait (fifos; locks).
        const NONBLOCK = libc::O_NONBLOCK;
        /// Writes wait until data is durable.
        const DSYNC = libc::O_DSYNC;
        /// Writes wait until data and metadata are durable.
        const SYNC = libc::O_SYNC;
        /// Bypass caches.
        const DIRECT = libc::O_DIRECT;
        /// Fail unless a directory.
        const DIRECTORY = libc::O_DIRECTORY;
        /// Fail if the last component is a symbolic link.
        const NOFOLLOW = libc::O_NOFOLLOW;
        /// Leave the access time alone.
        const NOATIME = libc::O_NOATIME;
        /// A handle to the name only.
        const PATH = libc::O_PATH;
        /// An unnamed file in this directory. It has the bit of DIRECTORY as well, as on Linux: ask
        /// with `contains`.
        const TMPFILE = libc::O_TMPFILE;
        /// Unknown bits pass through unharmed.
        const _ = !0;
    }

    /// Flags of renameat2(2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct RenameFlags: u32 {
        /// Fail if the new name exists.
        const NOREPLACE = libc::RENAME_NOREPLACE;
        /// Swap the two names.
        const EXCHANGE = libc::RENAME_EXCHANGE;
        /// Leave a whiteout (character device 0:0) at the old name.
        const WHITEOUT = libc::RENAME_WHITEOUT;
    }

    /// Modes of fallocate(2); no bit set means *allocate and extend*.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Fallocate: i32 {
        /// Leave the size as it is.
        const KEEP_SIZE = libc::FALLOC_FL_KEEP_SIZE;
        /// Make a hole (needs KEEP_SIZE).
        const PUNCH_HOLE = libc::FALLOC_FL_PUNCH_HOLE;
        /// Remove the range, shifting what follows down.
        const COLLAPSE_RANGE = libc::FALLOC_FL_COLLAPSE_RANGE;
        /// Zero the range, keeping its space.
        const ZERO_RANGE = libc::FALLOC_FL_ZERO_RANGE;
        /// Open a hole, shifting what follows up.
        const INSERT_RANGE = libc::FALLOC_FL_INSERT_RANGE;
        /// Make shared extents private.
        const UNSHARE_RANGE = libc::FALLOC_FL_UNSHARE_RANGE;
    }

    /// Flags of an inode (ioctl_iflags(2), chattr(1)) that are kept here, with Linux's numbers.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct FileFlags: u32 {
        /// Nothing of the inode may change: no content, no attribute, no name.
        const IMMUTABLE = 0x10;
        /// Writes go to the end only; in a directory, names may only be added.
        const APPEND = 0x20;
        /// dump(8) skips it.
        const NODUMP = 0x40;
        /// Reading leaves its access time alone.
        const NOATIME = 0x80;
        /// New inodes in this directory, and inodes moved to it, get its project.
        const PROJECT_INHERIT = 0x2000_0000;
    }

    /// What access(2) and the permission checks ask for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Access: u8 {
        /// Execute a file, search a directory.
        const EXEC = 1;
        /// Write.
        const WRITE = 2;
        /// Read.
        const READ = 4;
    }
}

impl FileFlags {
    /// Flags that keep the inode from being removed, renamed or linked, and its attributes from
    /// being changed.
    pub const PROTECTING: Self = Self::IMMUTABLE.union(Self::APPEND);
    /// Flags that new inodes inherit from their directory.
    pub const INHERITED: Self = Self::NODUMP
        .union(Self::NOATIME)
        .union(Self::PROJECT_INHERIT);

    /// The flags among these that an inode of this type can have.
    #[must_use]
    pub const fn of_kind(self, kind: FileType) -> Self {
        match kind {
            FileType::Directory => self,
            FileType::Regular => self.difference(Self::PROJECT_INHERIT),
            _ => self.intersection(Self::NODUMP.union(Self::NOATIME)),
        }
    }
}

impl OpenFlags {
    /// May the file be read?
    #[must_use]
    pub const fn readable(self) -> bool {
        self.bits() & libc::O_ACCMODE != libc::O_WRONLY && self.bits() & libc::O_PATH == 0
    }

    /// May the file be written?
    #[must_use]
    pub const fn writable(self) -> bool {
        self.bits() & libc::O_ACCMODE != libc::O_RDONLY && self.bits() & libc::O_PATH == 0
    }
}

/// Where lseek(2) starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The next byte that is data, at or after the offset.
    Data,
    /// The next hole (or the end), at or after the offset.
    Hole,
}

/// How setxattr(2) treats a name that exists or does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XattrSet {
    /// Create or replace.
    #[default]
    Any,
    /// Create; fail with `EEXIST`.
    Create,
    /// Replace; fail with `ENODATA`.
    Replace,
}
