use crate::{FileType, Ino, Time, mode_bits};

/// What stat(2) and statx(2) return for an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// The inode's number.
    pub ino: Ino,
    /// Its type.
    pub kind: FileType,
    /// Permission, set-id and sticky bits (07777).
    pub perm: u16,
    /// Number of names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Owning group.
    pub gid: u32,
    /// Device number of a device inode, as `makedev(3)` packs it.
    pub rdev: u64,
    /// Length in bytes.
    pub size: u64,
    /// Space held, in units of 512 bytes.
    pub blocks: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of the content.
    pub mtime: Time,
    /// Last change of the inode.
    pub ctime: Time,
    /// Creation.
    pub btime: Time,
}

impl Attr {
    /// The mode word of stat(2).
    #[must_use]
    pub const fn mode(&self) -> u32 {
        mode_bits(self.kind, self.perm)
    }
}

/// A time to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The file system's present time (`UTIME_NOW`).
    Now,
    /// This time.
    At(Time),
}

/// Attributes to change; `None` leaves one as it is (`UTIME_OMIT` for times).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// New permission bits (07777).
    pub perm: Option<u16>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New length in bytes.
    pub size: Option<u64>,
    /// New time of access.
    pub atime: Option<SetTime>,
    /// New time of modification.
    pub mtime: Option<SetTime>,
    /// New time of change: only a kernel that keeps its own clock (writeback cache) sets it.
    pub ctime: Option<SetTime>,
}

/// What statfs(2) returns for a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatFs {
    /// Block size in bytes.
    pub block_size: u32,
    /// Total number of blocks.
    pub blocks: u64,
    /// Free blocks, reserved ones included.
    pub blocks_free: u64,
    /// Free blocks that a file can get.
    pub blocks_available: u64,
    /// Total number of inodes.
    pub files: u64,
    /// Inodes free.
    pub files_free: u64,
    /// Longest name in bytes.
    pub name_max: u32,
}
