//! The actions of a repair.

use std::fmt;

use holdfast_types::{FileType, Ino};

use crate::check::{Branch, shown};

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// The journal was replayed, which is no defect.
    Replayed,
    /// The journal could not be replayed: its changes are lost.
    JournalDropped {
        /// The error of the replay.
        reason: String,
    },
    /// A tree was built anew of its readable records.
    TreeRebuilt {
        /// The tree.
        branch: Branch,
        /// The number of its records now.
        records: u64,
    },
    /// A lost inode was made anew for its names and content, with default attributes.
    InodeMade {
        /// The inode.
        ino: Ino,
        /// Its type.
        kind: FileType,
    },
    /// An inode's attributes were changed: links, length, parent.
    InodeChanged {
        /// The inode.
        ino: Ino,
    },
    /// A name was removed: its inode is missing, it was invalid, or a duplicate.
    NameRemoved {
        /// The directory.
        dir: Ino,
        /// The name.
        name: Box<[u8]>,
    },
    /// A name was given the type of its inode.
    NameChanged {
        /// The directory.
        dir: Ino,
        /// The name.
        name: Box<[u8]>,
    },
    /// A nameless inode was given a name in `lost+found`.
    Found {
        /// The inode.
        ino: Ino,
        /// Its name there.
        name: String,
    },
    /// Content or an attribute was removed: its inode is missing, its place was invalid, or it was
    /// a duplicate.
    ContentRemoved {
        /// The inode.
        ino: Ino,
        /// The first block of an extent.
        offset: u64,
    },
    /// A part of a file shared its blocks with another file, and was given a copy of them. Only one
    /// of the two files can have the right content.
    ContentCopied {
        /// The inode.
        ino: Ino,
        /// The first block of the file.
        offset: u64,
    },
    /// An extended attribute was moved to the key of its name.
    XattrMoved {
        /// The inode.
        ino: Ino,
        /// Its name.
        name: Box<[u8]>,
    },
    /// A symbolic link without a target got [this one](super::LOST_TARGET).
    TargetMade {
        /// The inode.
        ino: Ino,
    },
    /// Bitmaps, counts and superblocks were written again.
    Counted,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replayed => f.write_str("replayed the journal"),
            Self::JournalDropped { reason } => write!(
                f,
                "dropped the journal, and the changes that only it knew: {reason}"
            ),
            Self::TreeRebuilt { branch, records } => write!(
                f,
                "made the {branch} anew of the {records} records that could be read"
            ),
            Self::InodeMade { ino, kind } => write!(
                f,
                "made inode {ino} anew, {kind:?}: its attributes are lost"
            ),
            Self::InodeChanged { ino } => {
                write!(f, "changed attributes of inode {ino} to fit the rest")
            }
            Self::NameRemoved { dir, name } => {
                write!(f, "removed the name {:?} of directory {dir}", shown(name))
            }
            Self::NameChanged { dir, name } => write!(
                f,
                "gave the name {:?} of directory {dir} the type of its inode",
                shown(name)
            ),
            Self::Found { ino, name } => write!(f, "put inode {ino} to lost+found/{name}"),
            Self::ContentRemoved { ino, offset } => {
                write!(f, "removed content of inode {ino} at {offset}")
            }
            Self::ContentCopied { ino, offset } => write!(
                f,
                "copied blocks of inode {ino} at {offset} that somebody else has, too"
            ),
            Self::XattrMoved { ino, name } => {
                write!(f, "moved the attribute {:?} of inode {ino}", shown(name))
            }
            Self::TargetMade { ino } => write!(f, "gave symbolic link {ino} a target"),
            Self::Counted => f.write_str("wrote bitmaps, counts and superblocks anew"),
        }
    }
}

/// Keeps the first actions, and counts the others.
#[derive(Debug, Default)]
pub(super) struct Actions {
    pub(super) kept: Vec<Action>,
    pub(super) more: u64,
    pub(super) most: usize,
}

impl Actions {
    pub(super) fn add(&mut self, repair_action: Action) {
        if self.kept.len() < self.most {
            self.kept.push(repair_action);
        } else {
            self.more += 1;
        }
    }
}
