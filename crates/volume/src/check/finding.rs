//! What a check finds.

use std::fmt;

use holdfast_types::Ino;
use thiserror::Error;

use crate::space;
use crate::superblock::SlotError;
use crate::tree::{Defect, Kind};

/// Which tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Branch {
    /// Attributes.
    Inodes,
    /// Names.
    Entries,
    /// Hashes of names.
    Hashes,
    /// Content, extents, extended attributes.
    Data,
    /// Inodes without names.
    Orphans,
}

impl Branch {
    /// The kind that its nodes say.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Inodes | Self::Orphans => Kind::Inodes,
            Self::Entries => Kind::Entries,
            Self::Hashes => Kind::Hashes,
            Self::Data => Kind::Data,
        }
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inodes => "inode tree",
            Self::Entries => "entry tree",
            Self::Hashes => "hash tree",
            Self::Data => "data tree",
            Self::Orphans => "orphan tree",
        })
    }
}

/// Who has blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A node of a tree.
    Node(Branch),
    /// A file's content.
    File(Ino),
    /// A value of an extended attribute of this inode.
    Value(Ino),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(branch) => write!(f, "a node of the {branch}"),
            Self::File(ino) => write!(f, "inode {ino}"),
            Self::Value(ino) => write!(f, "an extended attribute of inode {ino}"),
        }
    }
}

/// A name as messages show it.
fn shown(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

/// One defect.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Finding {
    /// A slot holds no superblock.
    #[error("superblock {slot}: {error}")]
    Superblock {
        /// Its block.
        slot: u64,
        /// What is wrong.
        error: SlotError,
    },
    /// The superblocks differ.
    #[error("the superblocks are of generations {} and {}", generations[0], generations[1])]
    Superblocks {
        /// Of each slot.
        generations: [u64; 2],
    },
    /// The device is shorter than its volume.
    #[error("the device has {found} blocks of the volume's {expected}")]
    CutShort {
        /// Blocks of the device.
        found: u64,
        /// Blocks of the volume.
        expected: u64,
    },
    /// The volume was not closed, and cannot be brought to where it was.
    #[error("the journal cannot be replayed: {reason}")]
    Journal {
        /// Why.
        reason: String,
    },
    /// A root that version 1 does not have.
    #[error("the {branch} has roots that this version does not write")]
    Root {
        /// Of which tree.
        branch: Branch,
    },
    /// A node.
    #[error("{branch}: node of level {level} at block {block}: {defect}")]
    Node {
        /// Of which tree.
        branch: Branch,
        /// Where.
        block: u64,
        /// Its level.
        level: u8,
        /// What is wrong with it.
        defect: Defect,
    },
    /// Blocks that somebody has who cannot have them.
    #[error("{length} blocks from block {start} on are no group's, and {owner} has them")]
    Outside {
        /// The first.
        start: u64,
        /// How many.
        length: u64,
        /// Who has them.
        owner: Owner,
    },
    /// Blocks that two have.
    #[error("block {block} is used twice: {owner} has it, and somebody else")]
    Shared {
        /// The first of them.
        block: u64,
        /// Who came second.
        owner: Owner,
    },
    /// A group without a bitmap.
    #[error("group {group} has no usable bitmap: {}; {}", slots[0], slots[1])]
    Bitmap {
        /// Which group.
        group: u64,
        /// What is wrong with each slot.
        slots: [space::SlotError; 2],
    },
    /// Bitmaps that cannot be read.
    #[error("the bitmap of group {group} cannot be read")]
    BitmapUnreadable {
        /// Which group.
        group: u64,
    },
    /// Not the bitmaps that the superblock means.
    #[error("the bitmaps are not those that the superblock means ({suspects} groups are suspect)")]
    Seal {
        /// Groups with a slot that was damaged.
        suspects: u64,
    },
    /// Used blocks that nobody has.
    #[error("{length} blocks from block {start} on are marked as used, and nobody has them")]
    Leaked {
        /// The first.
        start: u64,
        /// How many.
        length: u64,
    },
    /// Free blocks that somebody has.
    #[error("{length} blocks from block {start} on are marked as free, and somebody has them")]
    Unmarked {
        /// The first.
        start: u64,
        /// How many.
        length: u64,
    },
    /// The superblock counts other inodes than there are.
    #[error("the superblock counts {expected} inodes, and there are {found}")]
    InodeCount {
        /// What it says.
        expected: u64,
        /// What there are.
        found: u64,
    },
    /// An inode with a number that may be dealt again.
    #[error("inode {ino} has a number above the last dealt one, {last}")]
    InodeNumber {
        /// Which.
        ino: Ino,
        /// What the superblock says.
        last: u64,
    },
    /// There are inodes, and no root directory.
    #[error("there is no root directory")]
    NoRoot,
    /// A wrong number of links.
    #[error("inode {ino} counts {expected} links, and there are {found}")]
    Links {
        /// Which.
        ino: Ino,
        /// What it says.
        expected: u32,
        /// What there are.
        found: u32,
    },
    /// A directory with several names, or the root with one.
    #[error("directory {ino} has {names} names")]
    DirectoryNames {
        /// Which.
        ino: Ino,
        /// How many.
        names: u32,
    },
    /// An inode with links and no name.
    #[error("inode {ino} has no name")]
    Nameless {
        /// Which.
        ino: Ino,
    },
    /// A directory that knows another parent than the one that has its name.
    #[error("inode {ino} says that its parent is {parent}, which has no name of it")]
    Parent {
        /// Which.
        ino: Ino,
        /// What it says.
        parent: Ino,
    },
    /// A directory that no path from the root leads to.
    #[error("directory {ino} cannot be reached from the root")]
    Unreachable {
        /// Which.
        ino: Ino,
    },
    /// An inode without links that the orphan tree does not have.
    #[error("inode {ino} has no links, and is not among the orphans")]
    Orphan {
        /// Which.
        ino: Ino,
    },
    /// One of the orphan tree that is none.
    #[error("inode {ino} is among the orphans, and is none")]
    NoOrphan {
        /// Which.
        ino: Ino,
    },
    /// A name in a directory that is none.
    #[error(
        "name {:?} at {cookie} of inode {dir}, which is no directory",
        shown(name)
    )]
    EntryDirectory {
        /// The directory.
        dir: Ino,
        /// The place.
        cookie: u64,
        /// The name.
        name: Box<[u8]>,
    },
    /// A name that leads nowhere.
    #[error(
        "name {:?} at {cookie} of directory {dir} leads to inode {ino}, which is not there",
        shown(name)
    )]
    EntryNowhere {
        /// The directory.
        dir: Ino,
        /// The place.
        cookie: u64,
        /// The name.
        name: Box<[u8]>,
        /// Where it leads.
        ino: Ino,
    },
    /// A name that says another type than its inode.
    #[error(
        "name {:?} at {cookie} of directory {dir} says another type than inode {ino}",
        shown(name)
    )]
    EntryKind {
        /// The directory.
        dir: Ino,
        /// The place.
        cookie: u64,
        /// The name.
        name: Box<[u8]>,
        /// Where it leads.
        ino: Ino,
    },
    /// Bytes that no name has.
    #[error("{:?} at {cookie} of directory {dir} is no name", shown(name))]
    EntryName {
        /// The directory.
        dir: Ino,
        /// The place.
        cookie: u64,
        /// The bytes.
        name: Box<[u8]>,
    },
    /// A name that is there twice.
    #[error(
        "directory {dir} has the name {:?} twice, at {cookie} again",
        shown(name)
    )]
    SameName {
        /// The directory.
        dir: Ino,
        /// The second place.
        cookie: u64,
        /// The name.
        name: Box<[u8]>,
    },
    /// A name that cannot be found by its hash.
    #[error("the name at {cookie} of directory {dir} has no hash {hash:#010x} in the hash tree")]
    NoHash {
        /// The directory.
        dir: Ino,
        /// The place.
        cookie: u64,
        /// The name's hash.
        hash: u32,
    },
    /// A hash of a name that is not there.
    #[error("hash {hash:#010x} of directory {dir} leads to {cookie}, where no such name is")]
    NoEntry {
        /// The directory.
        dir: Ino,
        /// The place.
        cookie: u64,
        /// The hash.
        hash: u32,
    },
    /// Content of nobody.
    #[error("inode {ino} has content or attributes, and is not there")]
    DataOwner {
        /// Which.
        ino: Ino,
    },
    /// Content of what can have none.
    #[error("inode {ino} has content that its type cannot have")]
    DataKind {
        /// Which.
        ino: Ino,
    },
    /// A file that lies in the tree and in blocks.
    #[error("inode {ino} has bytes in the tree and blocks as well")]
    BothForms {
        /// Which.
        ino: Ino,
    },
    /// A wrong length.
    #[error("inode {ino} has a length of {expected}, and {found} bytes in the tree")]
    Length {
        /// Which.
        ino: Ino,
        /// What it says.
        expected: u64,
        /// What there are.
        found: u64,
    },
    /// Written blocks behind a file's end.
    #[error("inode {ino} has written blocks behind its end, from {offset} on")]
    BehindEnd {
        /// Which.
        ino: Ino,
        /// In the file, in blocks.
        offset: u64,
    },
    /// A file that says another space than it takes.
    #[error("inode {ino} says that it takes {expected} blocks, and it takes {found}")]
    Space {
        /// Which.
        ino: Ino,
        /// What it says.
        expected: u64,
        /// What it takes.
        found: u64,
    },
    /// File flags that are unknown, or that no inode of its type or no inode of this volume can have.
    #[error(
        "inode {ino} has file flags {flags:#x} and project {project}, which it cannot have here"
    )]
    FileFlags {
        /// Which.
        ino: Ino,
        /// All its flags.
        flags: u32,
        /// Its project.
        project: u32,
    },
    /// Two extents for the same part of a file.
    #[error("inode {ino} has two places for block {offset}")]
    Overlap {
        /// Which.
        ino: Ino,
        /// In the file, in blocks.
        offset: u64,
    },
    /// A symbolic link that leads nowhere at all.
    #[error("symbolic link {ino} has no target")]
    NoTarget {
        /// Which.
        ino: Ino,
    },
    /// Extended attributes of an inode that says that it has none.
    #[error("inode {ino} says that it has no extended attributes, and has some")]
    XattrFlag {
        /// Whose.
        ino: Ino,
    },
    /// An extended attribute that its name's hash does not lead to.
    #[error(
        "the extended attribute {:?} of inode {ino} is not where its name is looked for",
        shown(name)
    )]
    XattrPlace {
        /// Whose.
        ino: Ino,
        /// Its name.
        name: Box<[u8]>,
    },
    /// An extended attribute that is there twice.
    #[error("inode {ino} has the extended attribute {:?} twice", shown(name))]
    SameXattr {
        /// Whose.
        ino: Ino,
        /// Its name.
        name: Box<[u8]>,
    },
    /// A value that its blocks cannot hold.
    #[error("an extended attribute of inode {ino} has {len} bytes in {blocks} blocks")]
    ValueLength {
        /// Whose.
        ino: Ino,
        /// Its length.
        len: u32,
        /// Its blocks.
        blocks: u32,
    },
}

impl Finding {
    /// A word for it, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Superblock { .. } => "superblock",
            Self::Superblocks { .. } => "superblocks-differ",
            Self::CutShort { .. } => "cut-short",
            Self::Journal { .. } => "journal",
            Self::Root { .. } => "root",
            Self::Node { .. } => "node",
            Self::Outside { .. } => "outside",
            Self::Shared { .. } => "used-twice",
            Self::Bitmap { .. } => "bitmap",
            Self::BitmapUnreadable { .. } => "bitmap-unreadable",
            Self::Seal { .. } => "seal",
            Self::Leaked { .. } => "leaked",
            Self::Unmarked { .. } => "not-marked",
            Self::InodeCount { .. } => "inode-count",
            Self::InodeNumber { .. } => "inode-number",
            Self::NoRoot => "no-root",
            Self::Links { .. } => "links",
            Self::DirectoryNames { .. } => "directory-names",
            Self::Nameless { .. } => "nameless",
            Self::Parent { .. } => "parent",
            Self::Unreachable { .. } => "unreachable",
            Self::Orphan { .. } => "orphan",
            Self::NoOrphan { .. } => "no-orphan",
            Self::EntryDirectory { .. } => "entry-directory",
            Self::EntryNowhere { .. } => "entry-nowhere",
            Self::EntryKind { .. } => "entry-type",
            Self::EntryName { .. } => "entry-name",
            Self::SameName { .. } => "same-name",
            Self::NoHash { .. } => "no-hash",
            Self::NoEntry { .. } => "no-entry",
            Self::DataOwner { .. } => "data-owner",
            Self::DataKind { .. } => "data-type",
            Self::BothForms { .. } => "both-forms",
            Self::Length { .. } => "length",
            Self::BehindEnd { .. } => "behind-end",
            Self::Space { .. } => "space",
            Self::FileFlags { .. } => "file-flags",
            Self::Overlap { .. } => "overlap",
            Self::NoTarget { .. } => "no-target",
            Self::XattrFlag { .. } => "xattr-flag",
            Self::XattrPlace { .. } => "xattr-place",
            Self::SameXattr { .. } => "same-xattr",
            Self::ValueLength { .. } => "value-length",
        }
    }

    /// The block that it is about.
    #[must_use]
    pub fn block(&self) -> Option<u64> {
        match self {
            Self::Superblock { slot: block, .. }
            | Self::Node { block, .. }
            | Self::Outside { start: block, .. }
            | Self::Shared { block, .. }
            | Self::Leaked { start: block, .. }
            | Self::Unmarked { start: block, .. } => Some(*block),
            _ => None,
        }
    }

    /// The inode that it is about; of a name, its directory.
    #[must_use]
    pub fn inode(&self) -> Option<Ino> {
        match self {
            Self::Outside { owner, .. } | Self::Shared { owner, .. } => match owner {
                Owner::Node(_) => None,
                Owner::File(ino) | Owner::Value(ino) => Some(*ino),
            },
            Self::InodeNumber { ino, .. }
            | Self::Links { ino, .. }
            | Self::DirectoryNames { ino, .. }
            | Self::Nameless { ino }
            | Self::Parent { ino, .. }
            | Self::Unreachable { ino }
            | Self::Orphan { ino }
            | Self::NoOrphan { ino }
            | Self::DataOwner { ino }
            | Self::DataKind { ino }
            | Self::BothForms { ino }
            | Self::Length { ino, .. }
            | Self::BehindEnd { ino, .. }
            | Self::Space { ino, .. }
            | Self::FileFlags { ino, .. }
            | Self::Overlap { ino, .. }
            | Self::NoTarget { ino }
            | Self::XattrFlag { ino }
            | Self::XattrPlace { ino, .. }
            | Self::SameXattr { ino, .. }
            | Self::ValueLength { ino, .. }
            | Self::EntryDirectory { dir: ino, .. }
            | Self::EntryNowhere { dir: ino, .. }
            | Self::EntryKind { dir: ino, .. }
            | Self::EntryName { dir: ino, .. }
            | Self::SameName { dir: ino, .. }
            | Self::NoHash { dir: ino, .. }
            | Self::NoEntry { dir: ino, .. } => Some(*ino),
            _ => None,
        }
    }

    /// The name that it is about.
    #[must_use]
    pub fn name(&self) -> Option<&[u8]> {
        match self {
            Self::EntryDirectory { name, .. }
            | Self::EntryNowhere { name, .. }
            | Self::EntryKind { name, .. }
            | Self::EntryName { name, .. }
            | Self::XattrPlace { name, .. }
            | Self::SameXattr { name, .. }
            | Self::SameName { name, .. } => Some(name),
            _ => None,
        }
    }
}
