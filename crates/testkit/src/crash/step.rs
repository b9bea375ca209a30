//! What a workload is made of.

/// One step, as data. Paths are relative to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An empty file.
    Create(&'static str),
    /// A directory.
    Mkdir(&'static str),
    /// Bytes at an offset; the file is made if there is none.
    Write(&'static str, u64, usize),
    /// Bytes at the end.
    Append(&'static str, usize),
    /// A new length.
    Truncate(&'static str, u64),
    /// A range becomes a hole.
    Punch(&'static str, u64, u64),
    /// A range becomes zeros; the file grows.
    Zero(&'static str, u64, u64),
    /// A range becomes zeros; the length stays.
    ZeroKept(&'static str, u64, u64),
    /// Bytes of one file at an offset into another, which is made if there is none: so many.
    Copy(&'static str, u64, &'static str, u64, u64),
    /// Space is taken for a range; the file grows.
    Allocate(&'static str, u64, u64),
    /// Space is taken for a range; the length stays.
    Reserve(&'static str, u64, u64),
    /// A range is removed.
    Collapse(&'static str, u64, u64),
    /// A hole is opened.
    Insert(&'static str, u64, u64),
    /// Another name; what had it is gone.
    Rename(&'static str, &'static str),
    /// Two names change places.
    Exchange(&'static str, &'static str),
    /// One more name.
    Link(&'static str, &'static str),
    /// A name goes.
    Unlink(&'static str),
    /// An empty directory goes.
    Rmdir(&'static str),
    /// A symbolic link.
    Symlink(&'static str),
    /// An extended attribute of so many bytes.
    SetXattr(&'static str, usize),
    /// It goes.
    RemoveXattr(&'static str),
    /// Other permission bits.
    Chmod(&'static str, u16),
    /// Another owner.
    Chown(&'static str, u32),
    /// The file is opened, and stays open.
    Hold(&'static str),
    /// Bytes into the file that has been open for longest.
    WriteHeld(u64, usize),
    /// It is closed.
    Close,
    /// The file is made durable, and everything before.
    Fsync(&'static str),
    /// Everything is handed to the device's cache.
    WriteBehind,
    /// Everything is made durable.
    Sync,
    /// Everything is folded into the trees.
    Checkpoint,
    /// The volume gets so many blocks more.
    Grow(u64),
    /// The device is told what is free.
    Trim,
    /// The volume is closed and opened again.
    Reopen,
}

impl Step {
    /// Is everything up to this step durable once it has succeeded?
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        matches!(
            self,
            Self::Fsync(_) | Self::Sync | Self::Checkpoint | Self::Reopen
        )
    }

    /// The file that has blocks from then on, however few bytes.
    #[must_use]
    pub const fn takes_blocks(&self) -> Option<&'static str> {
        match self {
            Self::Allocate(path, ..)
            | Self::Reserve(path, ..)
            | Self::Zero(path, ..)
            | Self::ZeroKept(path, ..) => Some(path),
            _ => None,
        }
    }

    /// The file in which it moves bytes to other offsets.
    #[must_use]
    pub const fn shifts(&self) -> Option<&'static str> {
        match self {
            Self::Collapse(path, ..) | Self::Insert(path, ..) => Some(path),
            _ => None,
        }
    }
}
