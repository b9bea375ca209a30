use std::fmt;

use crate::types;

/// What an inode is: file, directory, symbolic link, ...; as `std::fs::FileType`.
///
/// ```
/// use holdfast::{FileSystem, FileType, NodeKind};
///
/// let fs = FileSystem::memory();
/// fs.mkfifo("/pipe", 0o600)?;
/// let found = fs.metadata("/pipe")?.file_type();
/// assert!(found.is_fifo() && !found.is_file());
/// assert_eq!(found, FileType::from(NodeKind::Fifo));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileType(types::FileType);

impl FileType {
    /// A directory?
    #[must_use]
    pub const fn is_dir(self) -> bool {
        matches!(self.0, types::FileType::Directory)
    }

    /// A regular file?
    #[must_use]
    pub const fn is_file(self) -> bool {
        matches!(self.0, types::FileType::Regular)
    }

    /// A symbolic link?
    #[must_use]
    pub const fn is_symlink(self) -> bool {
        matches!(self.0, types::FileType::Symlink)
    }

    /// A named pipe?
    #[must_use]
    pub const fn is_fifo(self) -> bool {
        matches!(self.0, types::FileType::Fifo)
    }

    /// A socket's name?
    #[must_use]
    pub const fn is_socket(self) -> bool {
        matches!(self.0, types::FileType::Socket)
    }

    /// A block device?
    #[must_use]
    pub const fn is_block_device(self) -> bool {
        matches!(self.0, types::FileType::BlockDevice)
    }

    /// A character device?
    #[must_use]
    pub const fn is_char_device(self) -> bool {
        matches!(self.0, types::FileType::CharDevice)
    }

    /// The same as an enumeration, to be matched on.
    #[must_use]
    pub const fn kind(self) -> types::FileType {
        self.0
    }
}

impl From<types::FileType> for FileType {
    fn from(kind: types::FileType) -> Self {
        Self(kind)
    }
}

impl From<FileType> for types::FileType {
    fn from(kind: FileType) -> Self {
        kind.0
    }
}

impl fmt::Debug for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileType({:?})", self.0)
    }
}
