use std::io;
use std::time::SystemTime;

use crate::types::{Attr, Time};
use crate::{FileType, Permissions};

/// The attributes of an inode at one moment, as `std::fs::Metadata` with its Unix extension.
///
/// It converts from and into the core's [`Attr`].
///
/// ```
/// use holdfast::FileSystem;
///
/// let fs = FileSystem::memory();
/// fs.write("/greeting", "hello")?;
/// fs.hard_link("/greeting", "/again")?;
/// let metadata = fs.metadata("/again")?;
/// assert_eq!((metadata.len(), metadata.nlink(), metadata.mode()), (5, 2, 0o100644));
/// assert_eq!(metadata.ino(), fs.metadata("/greeting")?.ino());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata(Attr);

impl Metadata {
    /// The type.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.0.kind.into()
    }

    /// A directory?
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.file_type().is_dir()
    }

    /// A regular file?
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file_type().is_file()
    }

    /// A symbolic link? Only metadata of [`symlink_metadata`](crate::Dir::symlink_metadata) and of
    /// directory entries can be one.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.file_type().is_symlink()
    }

    /// Length in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "std::fs::Metadata has none")]
    pub const fn len(&self) -> u64 {
        self.0.size
    }

    /// Permissions.
    #[must_use]
    pub const fn permissions(&self) -> Permissions {
        Permissions::from_mode(self.0.mode())
    }

    /// Time of the last change of the content.
    ///
    /// # Errors
    /// None: a result only as in the standard library.
    pub fn modified(&self) -> io::Result<SystemTime> {
        Ok(self.0.mtime.into())
    }

    /// Time of the last access, as far as the file system's options keep it.
    ///
    /// # Errors
    /// None: a result only as in the standard library.
    pub fn accessed(&self) -> io::Result<SystemTime> {
        Ok(self.0.atime.into())
    }

    /// Time of birth.
    ///
    /// # Errors
    /// None: a result only as in the standard library.
    pub fn created(&self) -> io::Result<SystemTime> {
        Ok(self.0.btime.into())
    }

    /// Time of the last change of the inode: attributes, names or content.
    #[must_use]
    pub fn changed(&self) -> SystemTime {
        self.0.ctime.into()
    }

    /// Inode number: never used again for another file in the life of the file system.
    #[must_use]
    pub const fn ino(&self) -> u64 {
        self.0.ino.0
    }

    /// The mode word: type and permission bits together.
    #[must_use]
    pub const fn mode(&self) -> u32 {
        self.0.mode()
    }

    /// Number of names; of a directory: 2 and one for each directory in it.
    #[must_use]
    pub fn nlink(&self) -> u64 {
        self.0.nlink.into()
    }

    /// Owner.
    #[must_use]
    pub const fn uid(&self) -> u32 {
        self.0.uid
    }

    /// Owning group.
    #[must_use]
    pub const fn gid(&self) -> u32 {
        self.0.gid
    }

    /// Device number of a device inode, as makedev(3) packs it.
    #[must_use]
    pub const fn rdev(&self) -> u64 {
        self.0.rdev
    }

    /// Length in bytes, by the name of the Unix extension.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.0.size
    }

    /// The preferred size of reads and writes.
    #[must_use]
    pub const fn blksize(&self) -> u64 {
        4096
    }

    /// Allocated space in units of 512 bytes; less than the length for a file with holes.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.0.blocks
    }

    /// Time of the last access: seconds since 1970.
    #[must_use]
    pub const fn atime(&self) -> i64 {
        self.0.atime.secs()
    }

    /// Time of the last access: nanoseconds within the second.
    #[must_use]
    pub const fn atime_nsec(&self) -> i64 {
        nanos(self.0.atime)
    }

    /// Time of the last change of the content: seconds since 1970.
    #[must_use]
    pub const fn mtime(&self) -> i64 {
        self.0.mtime.secs()
    }

    /// Time of the last change of the content: nanoseconds within the second.
    #[must_use]
    pub const fn mtime_nsec(&self) -> i64 {
        nanos(self.0.mtime)
    }

    /// Time of the last change of the inode: seconds since 1970.
    #[must_use]
    pub const fn ctime(&self) -> i64 {
        self.0.ctime.secs()
    }

    /// Time of the last change of the inode: nanoseconds within the second.
    #[must_use]
    pub const fn ctime_nsec(&self) -> i64 {
        nanos(self.0.ctime)
    }

    /// The core's attributes.
    #[must_use]
    pub const fn attr(&self) -> &Attr {
        &self.0
    }
}

const fn nanos(time: Time) -> i64 {
    time.subsec_nanos() as i64
}

impl From<Attr> for Metadata {
    fn from(attr: Attr) -> Self {
        Self(attr)
    }
}

impl From<Metadata> for Attr {
    fn from(metadata: Metadata) -> Self {
        metadata.0
    }
}
