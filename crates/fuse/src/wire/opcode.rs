//! Operation codes.

/// Declares [`Opcode`] with its table of numbers and names.
macro_rules! opcodes {
    ($($name:ident = $number:literal, $wire:literal;)*) => {
        /// An operation of the FUSE protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Opcode {
            $(
                #[doc = concat!("`FUSE_", $wire, "`.")]
                $name = $number,
            )*
        }

        impl Opcode {
            /// All operations, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The operation with this number, if this side knows one.
            #[must_use]
            pub const fn from_raw(raw: u32) -> Option<Self> {
                match raw {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The protocol's name for it, without `FUSE_`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $wire,)*
                }
            }
        }
    };
}

opcodes! {
    Lookup = 1, "LOOKUP";
    Forget = 2, "FORGET";
    GetAttr = 3, "GETATTR";
    SetAttr = 4, "SETATTR";
    ReadLink = 5, "READLINK";
    Symlink = 6, "SYMLINK";
    Mknod = 8, "MKNOD";
    Mkdir = 9, "MKDIR";
    Unlink = 10, "UNLINK";
    Rmdir = 11, "RMDIR";
    Rename = 12, "RENAME";
    Link = 13, "LINK";
    Open = 14, "OPEN";
    Read = 15, "READ";
    Write = 16, "WRITE";
    StatFs = 17, "STATFS";
    Release = 18, "RELEASE";
    Fsync = 20, "FSYNC";
    SetXattr = 21, "SETXATTR";
    GetXattr = 22, "GETXATTR";
    ListXattr = 23, "LISTXATTR";
    RemoveXattr = 24, "REMOVEXATTR";
    Flush = 25, "FLUSH";
    Init = 26, "INIT";
    OpenDir = 27, "OPENDIR";
    ReadDir = 28, "READDIR";
    ReleaseDir = 29, "RELEASEDIR";
    FsyncDir = 30, "FSYNCDIR";
    GetLk = 31, "GETLK";
    SetLk = 32, "SETLK";
    SetLkW = 33, "SETLKW";
    Access = 34, "ACCESS";
    Create = 35, "CREATE";
    Interrupt = 36, "INTERRUPT";
    Bmap = 37, "BMAP";
    Destroy = 38, "DESTROY";
    Ioctl = 39, "IOCTL";
    Poll = 40, "POLL";
    NotifyReply = 41, "NOTIFY_REPLY";
    BatchForget = 42, "BATCH_FORGET";
    Fallocate = 43, "FALLOCATE";
    ReadDirPlus = 44, "READDIRPLUS";
    Rename2 = 45, "RENAME2";
    Lseek = 46, "LSEEK";
    CopyFileRange = 47, "COPY_FILE_RANGE";
    SyncFs = 50, "SYNCFS";
    TmpFile = 51, "TMPFILE";
    StatX = 52, "STATX";
    CopyFileRange64 = 53, "COPY_FILE_RANGE_64";
}

impl Opcode {
    /// One more than the largest number: the length of a table by opcode.
    pub(crate) const LIMIT: usize = 54;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_is_found_by_its_number_and_below_the_limit() {
        for &opcode in Opcode::ALL {
            assert_eq!(Opcode::from_raw(opcode as u32), Some(opcode));
            assert!((opcode as usize) < Opcode::LIMIT);
        }
        assert_eq!(Opcode::from_raw(7), None);
        assert_eq!(Opcode::from_raw(4096), None);
    }
}
