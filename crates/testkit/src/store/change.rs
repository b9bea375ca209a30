use holdfast_core::store::{Change, InodeRecord};
use holdfast_types::{FileType, Ino};

/// A [`Change`] that owns its bytes: kept by a recording, replayed into another store.
#[expect(missing_docs, reason = "the variants and fields are those of Change")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedChange {
    Create {
        inode: InodeRecord,
        target: Option<Vec<u8>>,
    },
    Attributes {
        inode: InodeRecord,
    },
    Enter {
        dir: Ino,
        name: Vec<u8>,
        cookie: u64,
        ino: Ino,
        kind: FileType,
    },
    Leave {
        dir: Ino,
        name: Vec<u8>,
        cookie: u64,
    },
    Write {
        ino: Ino,
        offset: u64,
        data: Vec<u8>,
    },
    Truncate {
        ino: Ino,
        size: u64,
    },
    Zero {
        ino: Ino,
        offset: u64,
        len: u64,
        keep: bool,
    },
    Allocate {
        ino: Ino,
        offset: u64,
        len: u64,
    },
    Collapse {
        ino: Ino,
        offset: u64,
        len: u64,
    },
    Insert {
        ino: Ino,
        offset: u64,
        len: u64,
    },
    Xattr {
        ino: Ino,
        name: Vec<u8>,
        value: Option<Vec<u8>>,
    },
    Free {
        ino: Ino,
    },
}

impl From<&Change<'_>> for OwnedChange {
    fn from(change: &Change<'_>) -> Self {
        match *change {
            Change::Create { ref inode, target } => Self::Create {
                inode: inode.clone(),
                target: target.map(<[u8]>::to_vec),
            },
            Change::Attributes { ref inode } => Self::Attributes {
                inode: inode.clone(),
            },
            Change::Enter {
                dir,
                name,
                cookie,
                ino,
                kind,
            } => Self::Enter {
                dir,
                name: name.to_vec(),
                cookie,
                ino,
                kind,
            },
            Change::Leave { dir, name, cookie } => Self::Leave {
                dir,
                name: name.to_vec(),
                cookie,
            },
            Change::Write { ino, offset, data } => Self::Write {
                ino,
                offset,
                data: data.to_vec(),
            },
            Change::Truncate { ino, size } => Self::Truncate { ino, size },
            Change::Zero {
                ino,
                offset,
                len,
                keep,
            } => Self::Zero {
                ino,
                offset,
                len,
                keep,
            },
            Change::Allocate { ino, offset, len } => Self::Allocate { ino, offset, len },
            Change::Collapse { ino, offset, len } => Self::Collapse { ino, offset, len },
            Change::Insert { ino, offset, len } => Self::Insert { ino, offset, len },
            Change::Xattr { ino, name, value } => Self::Xattr {
                ino,
                name: name.to_vec(),
                value: value.map(<[u8]>::to_vec),
            },
            Change::Free { ino } => Self::Free { ino },
        }
    }
}

impl OwnedChange {
    /// The change, to be applied.
    #[must_use]
    pub fn borrowed(&self) -> Change<'_> {
        match *self {
            Self::Create {
                ref inode,
                ref target,
            } => Change::Create {
                inode: inode.clone(),
                target: target.as_deref(),
            },
            Self::Attributes { ref inode } => Change::Attributes {
                inode: inode.clone(),
            },
            Self::Enter {
                dir,
                ref name,
                cookie,
                ino,
                kind,
            } => Change::Enter {
                dir,
                name,
                cookie,
                ino,
                kind,
            },
            Self::Leave {
                dir,
                ref name,
                cookie,
            } => Change::Leave { dir, name, cookie },
            Self::Write {
                ino,
                offset,
                ref data,
            } => Change::Write { ino, offset, data },
            Self::Truncate { ino, size } => Change::Truncate { ino, size },
            Self::Zero {
                ino,
                offset,
                len,
                keep,
            } => Change::Zero {
                ino,
                offset,
                len,
                keep,
            },
            Self::Allocate { ino, offset, len } => Change::Allocate { ino, offset, len },
            Self::Collapse { ino, offset, len } => Change::Collapse { ino, offset, len },
            Self::Insert { ino, offset, len } => Change::Insert { ino, offset, len },
            Self::Xattr {
                ino,
                ref name,
                ref value,
            } => Change::Xattr {
                ino,
                name,
                value: value.as_deref(),
            },
            Self::Free { ino } => Change::Free { ino },
        }
    }
}
