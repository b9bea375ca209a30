/// Set-user-id on execution.
pub const S_ISUID: u16 = 0o4000;
/// Set-group-id on execution; on a directory: children inherit its group.
pub const S_ISGID: u16 = 0o2000;
/// The sticky bit: in such a directory only owners remove names.
pub const S_ISVTX: u16 = 0o1000;

/// What an inode is. The discriminant is the `d_type` of readdir(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum FileType {
    /// A named pipe.
    Fifo = 1,
    /// A character device.
    CharDevice = 2,
    /// A directory.
    Directory = 4,
    /// A block device.
    BlockDevice = 6,
    /// A regular file.
    Regular = 8,
    /// A symbolic link.
    Symlink = 10,
    /// A socket's name.
    Socket = 12,
}

impl FileType {
    /// The type in a mode word (`S_IFMT` bits); 0 means a regular file, as in mknod(2).
    #[must_use]
    pub const fn from_mode(mode: u32) -> Option<Self> {
        match (mode & libc::S_IFMT) >> 12 {
            0 => Some(Self::Regular),
            kind => Self::from_dirent(kind as u8),
        }
    }

    /// The type of this `d_type` of readdir(3).
    #[inline]
    #[must_use]
    pub const fn from_dirent(kind: u8) -> Option<Self> {
        match kind {
            1 => Some(Self::Fifo),
            2 => Some(Self::CharDevice),
            4 => Some(Self::Directory),
            6 => Some(Self::BlockDevice),
            8 => Some(Self::Regular),
            10 => Some(Self::Symlink),
            12 => Some(Self::Socket),
            _ => None,
        }
    }

    /// The `d_type` of readdir(3).
    #[must_use]
    pub const fn dirent_type(self) -> u8 {
        self as u8
    }

    /// Is it a directory?
    #[must_use]
    pub const fn is_dir(self) -> bool {
        matches!(self, Self::Directory)
    }

    /// Does it carry a device number?
    #[must_use]
    pub const fn is_device(self) -> bool {
        matches!(self, Self::CharDevice | Self::BlockDevice)
    }
}

/// The mode word of stat(2): type and permission bits together.
#[must_use]
pub const fn mode_bits(kind: FileType, perm: u16) -> u32 {
    ((kind as u32) << 12) | (perm as u32 & 0o7777)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_word_survives_the_round_trip() {
        for kind in [
            FileType::Fifo,
            FileType::CharDevice,
            FileType::Directory,
            FileType::BlockDevice,
            FileType::Regular,
            FileType::Symlink,
            FileType::Socket,
        ] {
            let mode = mode_bits(kind, 0o4751);
            assert_eq!(FileType::from_mode(mode), Some(kind));
            assert_eq!(mode & 0o7777, 0o4751);
            assert_eq!(FileType::from_dirent(kind.dirent_type()), Some(kind));
        }
        let known = (0..=u8::MAX).filter_map(FileType::from_dirent);
        assert_eq!(known.count(), 7);
        assert_eq!(FileType::from_mode(0o644), Some(FileType::Regular));
        assert_eq!(FileType::from_mode(0o070_000), None);
    }
}
