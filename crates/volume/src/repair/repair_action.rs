//! What a repair did.

use std::fmt;

use holdfast_types::{FileType, Ino};

use crate::check::Branch;

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deed {
    /// The journal was replayed: nothing is wrong with that.
    Replayed,
    /// The journal could not be replayed: what only it knew is lost.
    JournalDropped {
        /// Why it could not.
        reason: String,
    },
    /// A tree was made anew of the records that could be read.
    TreeRebuilt {
        /// Which.
        branch: Branch,
        /// Records that it has now.
        records: u64,
    },
    /// An inode was lost, and made anew for its names and its content; its attributes are made up.
    InodeMade {
        /// Which.
        ino: Ino,
        /// What it is.
        kind: FileType,
    },
    /// An inode's attributes were changed to fit the rest: links, length, parent.
    InodeChanged {
        /// Which.
        ino: Ino,
    },
    /// A name went: it led nowhere, was none, or was one too many.
    NameRemoved {
        /// The directory.
        dir: Ino,
        /// The name.
        name: Box<[u8]>,
    },
    /// A name got the type of its inode.
    NameChanged {
        /// The directory.
        dir: Ino,
        /// The name.
        name: Box<[u8]>,
    },
    /// What had no name got one in `lost+found`.
    Found {
        /// Which.
        ino: Ino,
        /// Its name there.
        name: String,
    },
    /// Content or an attribute went: it was nobody's, lay where it cannot, or was there twice.
    ContentRemoved {
        /// Whose.
        ino: Ino,
        /// In blocks, where it was an extent.
        offset: u64,
    },
    /// A part of a file shared its blocks with another, and got a copy of its own. Only one of them can
    /// be right.
    ContentCopied {
        /// Whose.
        ino: Ino,
        /// In blocks.
        offset: u64,
    },
    /// An extended attribute went to where it is looked for.
    XattrMoved {
        /// Whose.
        ino: Ino,
        /// Its name.
        name: Box<[u8]>,
    },
    /// A symbolic link without a target got [this one](super::LOST_TARGET).
    TargetMade {
        /// Which.
        ino: Ino,
    },
    /// Bitmaps, counts and superblocks were written anew.
    Counted,
}

impl fmt::Display for Deed {
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

/// A name as messages show it.
fn shown(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

/// Keeps the first, and counts the others.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    pub(super) kept: Vec<Deed>,
    pub(super) more: u64,
    pub(super) most: usize,
}

impl Deeds {
    pub(super) fn add(&mut self, repair_action: Deed) {
        if self.kept.len() < self.most {
            self.kept.push(repair_action);
        } else {
            self.more += 1;
        }
    }
}
