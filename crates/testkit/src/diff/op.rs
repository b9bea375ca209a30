//! The operations: every call a file system answers, as data.

use holdfast_types::{Access, Fallocate, FileType, OpenFlags, RenameFlags, Whence, XattrSet};
use std::fmt;

/// A path or name, printed as a byte string so that a report can be pasted into a test.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Runs of one byte (long names, long paths) would drown the rest of a report.
        let bytes = &self.0;
        if bytes.len() > 48 {
            let (head, tail) = (&bytes[..12], &bytes[bytes.len() - 12..]);
            let (head, tail) = (head.escape_ascii(), tail.escape_ascii());
            return write!(f, "b\"{head}\"..{} bytes..\"{tail}\"", bytes.len());
        }
        write!(f, "b\"{}\"", bytes.escape_ascii())
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl<const N: usize> From<&[u8; N]> for Bytes {
    fn from(bytes: &[u8; N]) -> Self {
        Self(bytes.to_vec())
    }
}

/// A time as utimensat(2) takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// `UTIME_OMIT`.
    Omit,
    /// `UTIME_NOW`.
    Now,
    /// Seconds and nanoseconds since 1970.
    At(i64, u32),
}

/// The family of locks, which determines the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockFamily {
    /// The process's (here: the caller's), by fcntl(2).
    Posix,
    /// The open file description's, by fcntl(2).
    Ofd,
}

/// What a lock operation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWant {
    /// A shared lock.
    Read,
    /// An exclusive lock.
    Write,
    /// No lock.
    Unlock,
}

/// What an operation is applied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// What a path leads to, a last symbolic link followed.
    Path(Bytes),
    /// What a path names, a last symbolic link not followed.
    Link(Bytes),
    /// The caller's open file in this slot.
    File(usize),
}

/// One call, as one caller makes it. A slot is a place for one open file of the caller.
#[expect(
    missing_docs,
    reason = "each variant is the system call of its name, field by field"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Open {
        path: Bytes,
        flags: OpenFlags,
        perm: u16,
        slot: usize,
    },
    Close {
        slot: usize,
    },
    SetFlags {
        slot: usize,
        flags: OpenFlags,
    },
    Mkdir {
        path: Bytes,
        perm: u16,
    },
    Mknod {
        path: Bytes,
        kind: FileType,
        perm: u16,
        rdev: u64,
    },
    Symlink {
        target: Bytes,
        path: Bytes,
    },
    Readlink {
        path: Bytes,
    },
    Link {
        from: Bytes,
        to: Bytes,
        follow: bool,
    },
    LinkOpen {
        slot: usize,
        to: Bytes,
    },
    Unlink {
        path: Bytes,
    },
    Rmdir {
        path: Bytes,
    },
    Rename {
        from: Bytes,
        to: Bytes,
        flags: RenameFlags,
    },
    Stat {
        object: Object,
    },
    Chmod {
        object: Object,
        perm: u16,
    },
    Chown {
        object: Object,
        uid: Option<u32>,
        gid: Option<u32>,
    },
    Truncate {
        object: Object,
        len: i64,
    },
    Utimens {
        object: Object,
        atime: When,
        mtime: When,
    },
    Pread {
        slot: usize,
        offset: i64,
        lens: Vec<usize>,
    },
    Pwrite {
        slot: usize,
        offset: i64,
        lens: Vec<usize>,
        fill: u64,
    },
    Append {
        slot: usize,
        len: usize,
        fill: u64,
    },
    Seek {
        slot: usize,
        offset: i64,
        whence: Whence,
    },
    Fallocate {
        slot: usize,
        mode: Fallocate,
        offset: i64,
        len: i64,
    },
    CopyRange {
        from: usize,
        from_off: i64,
        to: usize,
        to_off: i64,
        len: usize,
    },
    Fsync {
        slot: usize,
        data_only: bool,
    },
    List {
        slot: usize,
        chunk: usize,
        resume: usize,
    },
    ListFrom {
        slot: usize,
        after: u64,
        most: usize,
    },
    GetXattr {
        object: Object,
        name: Bytes,
    },
    SetXattr {
        object: Object,
        name: Bytes,
        value: Bytes,
        how: XattrSet,
    },
    ListXattr {
        object: Object,
    },
    RemoveXattr {
        object: Object,
        name: Bytes,
    },
    Access {
        path: Bytes,
        want: Access,
        follow: bool,
    },
    SetLock {
        slot: usize,
        family: LockFamily,
        want: LockWant,
        start: i64,
        len: i64,
    },
    GetLock {
        slot: usize,
        family: LockFamily,
        want: LockWant,
        start: i64,
        len: i64,
    },
    Flock {
        slot: usize,
        want: LockWant,
    },
    StatFs {
        path: Bytes,
    },
    SyncFs {
        slot: usize,
    },
}

impl Op {
    /// The variant's name.
    #[must_use]
    pub fn name(&self) -> String {
        let text = format!("{self:?}");
        text.split([' ', '{']).next().unwrap_or_default().to_owned()
    }

    /// The slots the operation uses.
    #[must_use]
    pub fn slots(&self) -> Vec<usize> {
        match self {
            Self::Close { slot }
            | Self::SetFlags { slot, .. }
            | Self::Open { slot, .. }
            | Self::LinkOpen { slot, .. }
            | Self::Pread { slot, .. }
            | Self::Pwrite { slot, .. }
            | Self::Append { slot, .. }
            | Self::Seek { slot, .. }
            | Self::Fallocate { slot, .. }
            | Self::Fsync { slot, .. }
            | Self::List { slot, .. }
            | Self::ListFrom { slot, .. }
            | Self::SetLock { slot, .. }
            | Self::GetLock { slot, .. }
            | Self::Flock { slot, .. }
            | Self::SyncFs { slot } => vec![*slot],
            Self::CopyRange { from, to, .. } => vec![*from, *to],
            _ => match self.object() {
                Some(Object::File(slot)) => vec![*slot],
                _ => Vec::new(),
            },
        }
    }

    /// The object of an operation that has exactly one.
    #[must_use]
    pub fn object(&self) -> Option<&Object> {
        match self {
            Self::Stat { object }
            | Self::Chmod { object, .. }
            | Self::Chown { object, .. }
            | Self::Truncate { object, .. }
            | Self::Utimens { object, .. }
            | Self::GetXattr { object, .. }
            | Self::SetXattr { object, .. }
            | Self::ListXattr { object }
            | Self::RemoveXattr { object, .. } => Some(object),
            _ => None,
        }
    }

    /// The paths the operation names.
    #[must_use]
    pub fn paths(&self) -> Vec<&Bytes> {
        match self {
            Self::Open { path, .. }
            | Self::Mkdir { path, .. }
            | Self::Mknod { path, .. }
            | Self::Symlink { path, .. }
            | Self::Readlink { path }
            | Self::Unlink { path }
            | Self::Rmdir { path }
            | Self::Access { path, .. }
            | Self::StatFs { path } => vec![path],
            Self::Link { from, to, .. } | Self::Rename { from, to, .. } => vec![from, to],
            Self::LinkOpen { to, .. } => vec![to],
            _ => match self.object() {
                Some(Object::Path(path) | Object::Link(path)) => vec![path],
                _ => Vec::new(),
            },
        }
    }

    /// Can the operation change names?
    #[must_use]
    pub const fn changes_names(&self) -> bool {
        matches!(
            self,
            Self::Open { .. }
                | Self::Mkdir { .. }
                | Self::Mknod { .. }
                | Self::Symlink { .. }
                | Self::Link { .. }
                | Self::LinkOpen { .. }
                | Self::Unlink { .. }
                | Self::Rmdir { .. }
                | Self::Rename { .. }
        )
    }

    /// Can the operation change a file's bytes?
    #[must_use]
    pub const fn changes_bytes(&self) -> bool {
        matches!(
            self,
            Self::Open { .. }
                | Self::Truncate { .. }
                | Self::Pwrite { .. }
                | Self::Append { .. }
                | Self::Fallocate { .. }
                | Self::CopyRange { .. }
        )
    }

    /// Can the operation change extended attributes (ACLs among them)?
    #[must_use]
    pub const fn changes_xattrs(&self) -> bool {
        self.changes_bytes()
            || matches!(
                self,
                Self::SetXattr { .. }
                    | Self::RemoveXattr { .. }
                    | Self::Chmod { .. }
                    | Self::Chown { .. }
                    | Self::Mkdir { .. }
                    | Self::Mknod { .. }
            )
    }
}
