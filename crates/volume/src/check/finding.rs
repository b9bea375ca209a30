//! The findings of a check.

use std::fmt;

use holdfast_types::Ino;
use thiserror::Error;

use crate::space;
use crate::superblock::{SlotError, Superblock};
use crate::tree::{Defect, Kind, Root};

/// A tree of the volume.
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
    /// The root of this tree.
    pub(crate) fn root(self, superblock: &Superblock) -> Option<Root> {
        match self {
            Self::Orphans => superblock.orphans,
            _ => superblock.roots[self as usize][0],
        }
    }

    /// The kind in the headers of its nodes.
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

/// The owner of blocks.
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

/// A name in messages.
pub(crate) fn shown(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

/// One defect.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Finding {
    /// A slot holds no superblock.
    #[error("superblock {slot}: {error}")]
    Superblock {
        /// The slot's block.
        slot: u64,
        /// Its damage.
        error: SlotError,
    },
    /// The superblocks differ.
    #[error("the superblocks are of generations {} and {}", generations[0], generations[1])]
    Superblocks {
        /// The generation of each slot.
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
    /// The volume was not closed, and its journal cannot be replayed.
    #[error("the journal cannot be replayed: {reason}")]
    Journal {
        /// The error of the replay.
        reason: String,
    },
    /// A root that version 1 does not have.
    #[error("the {branch} has roots that this version does not write")]
    Root {
        /// The tree.
        branch: Branch,
    },
    /// A damaged node.
    #[error("{branch}: node of level {level} at block {block}: {defect}")]
    Node {
        /// The tree.
        branch: Branch,
        /// Its first block.
        block: u64,
        /// Its level.
        level: u8,
        /// The defect.
        defect: Defect,
    },
    /// Referenced blocks outside all groups.
    #[error("{length} blocks from block {start} on are no group's, and {owner} has them")]
    Outside {
        /// The first block.
        start: u64,
        /// The number of blocks.
        length: u64,
        /// The owner.
        owner: Owner,
    },
    /// Blocks with two owners.
    #[error("block {block} is used twice: {owner} has it, and somebody else")]
    Shared {
        /// The first of them.
        block: u64,
        /// The second owner found.
        owner: Owner,
    },
    /// A group without a usable bitmap.
    #[error("group {group} has no usable bitmap: {}; {}", slots[0], slots[1])]
    Bitmap {
        /// The group.
        group: u64,
        /// The damage of each slot.
        slots: [space::SlotError; 2],
    },
    /// Unreadable bitmaps.
    #[error("the bitmap of group {group} cannot be read")]
    BitmapUnreadable {
        /// The group.
        group: u64,
    },
    /// The bitmaps do not match the superblock's seal.
    #[error("the bitmaps are not those that the superblock means ({suspects} groups are suspect)")]
    Seal {
        /// Groups with a damaged slot.
        suspects: u64,
    },
    /// Blocks marked as used, without an owner.
    #[error("{length} blocks from block {start} on are marked as used, and nobody has them")]
    Leaked {
        /// The first block.
        start: u64,
        /// The number of blocks.
        length: u64,
    },
    /// Blocks marked as free, with an owner.
    #[error("{length} blocks from block {start} on are marked as free, and somebody has them")]
    Unmarked {
        /// The first block.
        start: u64,
        /// The number of blocks.
        length: u64,
    },
    /// The superblock's count of inodes is wrong.
    #[error("the superblock counts {expected} inodes, and there are {found}")]
    InodeCount {
        /// The superblock's count.
        expected: u64,
        /// The number of inodes.
        found: u64,
    },
    /// An inode with a number that may be given out again.
    #[error("inode {ino} has a number above the last dealt one, {last}")]
    InodeNumber {
        /// The inode.
        ino: Ino,
        /// The superblock's last number.
        last: u64,
    },
    /// There are inodes, but no root directory.
    #[error("there is no root directory")]
    NoRoot,
    /// A wrong number of links.
    #[error("inode {ino} counts {expected} links, and there are {found}")]
    Links {
        /// The inode.
        ino: Ino,
        /// Its recorded number of links.
        expected: u32,
        /// The number of its names, or of a directory's subdirectories plus 2.
        found: u32,
    },
    /// A directory with several names, or the root with one.
    #[error("directory {ino} has {names} names")]
    DirectoryNames {
        /// The directory.
        ino: Ino,
        /// The number of its names.
        names: u32,
    },
    /// An inode with links and no name.
    #[error("inode {ino} has no name")]
    Nameless {
        /// The inode.
        ino: Ino,
    },
    /// A directory with a recorded parent that does not contain its name.
    #[error("inode {ino} says that its parent is {parent}, which has no name of it")]
    Parent {
        /// The directory.
        ino: Ino,
        /// Its recorded parent.
        parent: Ino,
    },
    /// A directory that no path from the root leads to.
    #[error("directory {ino} cannot be reached from the root")]
    Unreachable {
        /// The directory.
        ino: Ino,
    },
    /// An inode without links that is not in the orphan tree.
    #[error("inode {ino} has no links, and is not among the orphans")]
    Orphan {
        /// The inode.
        ino: Ino,
    },
    /// An entry of the orphan tree that is no orphan.
    #[error("inode {ino} is among the orphans, and is none")]
    NoOrphan {
        /// The inode.
        ino: Ino,
    },
    /// A name in an inode that is no directory.
    #[error(
        "name {:?} at {cookie} of inode {dir}, which is no directory",
        shown(name)
    )]
    EntryDirectory {
        /// The inode.
        dir: Ino,
        /// The cookie of the name.
        cookie: u64,
        /// The name.
        name: Box<[u8]>,
    },
    /// A name of a missing inode.
    #[error(
        "name {:?} at {cookie} of directory {dir} leads to inode {ino}, which is not there",
        shown(name)
    )]
    EntryNowhere {
        /// The directory.
        dir: Ino,
        /// The cookie of the name.
        cookie: u64,
        /// The name.
        name: Box<[u8]>,
        /// The missing inode.
        ino: Ino,
    },
    /// A name with another type than its inode.
    #[error(
        "name {:?} at {cookie} of directory {dir} says another type than inode {ino}",
        shown(name)
    )]
    EntryKind {
        /// The directory.
        dir: Ino,
        /// The cookie of the name.
        cookie: u64,
        /// The name.
        name: Box<[u8]>,
        /// The inode.
        ino: Ino,
    },
    /// Bytes that are no valid name.
    #[error("{:?} at {cookie} of directory {dir} is no name", shown(name))]
    EntryName {
        /// The directory.
        dir: Ino,
        /// The cookie of the name.
        cookie: u64,
        /// The bytes.
        name: Box<[u8]>,
    },
    /// A name that exists twice.
    #[error(
        "directory {dir} has the name {:?} twice, at {cookie} again",
        shown(name)
    )]
    SameName {
        /// The directory.
        dir: Ino,
        /// The cookie of the second one.
        cookie: u64,
        /// The name.
        name: Box<[u8]>,
    },
    /// A name without its hash in the hash tree.
    #[error("the name at {cookie} of directory {dir} has no hash {hash:#010x} in the hash tree")]
    NoHash {
        /// The directory.
        dir: Ino,
        /// The cookie of the name.
        cookie: u64,
        /// The name's hash.
        hash: u32,
    },
    /// A hash without its name.
    #[error("hash {hash:#010x} of directory {dir} leads to {cookie}, where no such name is")]
    NoEntry {
        /// The directory.
        dir: Ino,
        /// The cookie.
        cookie: u64,
        /// The hash.
        hash: u32,
    },
    /// Content without an inode.
    #[error("inode {ino} has content or attributes, and is not there")]
    DataOwner {
        /// The missing inode.
        ino: Ino,
    },
    /// Content that the inode's type cannot have.
    #[error("inode {ino} has content that its type cannot have")]
    DataKind {
        /// The inode.
        ino: Ino,
    },
    /// A file with both inline bytes and extents.
    #[error("inode {ino} has bytes in the tree and blocks as well")]
    BothForms {
        /// The inode.
        ino: Ino,
    },
    /// A wrong length.
    #[error("inode {ino} has a length of {expected}, and {found} bytes in the tree")]
    Length {
        /// The inode.
        ino: Ino,
        /// Its recorded length.
        expected: u64,
        /// The length of its inline bytes.
        found: u64,
    },
    /// Written blocks behind a file's end.
    #[error("inode {ino} has written blocks behind its end, from {offset} on")]
    BehindEnd {
        /// The inode.
        ino: Ino,
        /// The first such block of the file.
        offset: u64,
    },
    /// A file with a wrong recorded number of blocks.
    #[error("inode {ino} says that it takes {expected} blocks, and it takes {found}")]
    Space {
        /// The inode.
        ino: Ino,
        /// The recorded number.
        expected: u64,
        /// The number of its blocks.
        found: u64,
    },
    /// File flags that are unknown, or that this type of inode or this volume cannot have.
    #[error(
        "inode {ino} has file flags {flags:#x} and project {project}, which it cannot have here"
    )]
    FileFlags {
        /// The inode.
        ino: Ino,
        /// All its flags.
        flags: u32,
        /// Its project.
        project: u32,
    },
    /// Two extents for the same part of a file.
    #[error("inode {ino} has two places for block {offset}")]
    Overlap {
        /// The inode.
        ino: Ino,
        /// The first block of the file that both map.
        offset: u64,
    },
    /// A symbolic link without a target.
    #[error("symbolic link {ino} has no target")]
    NoTarget {
        /// The inode.
        ino: Ino,
    },
    /// Extended attributes of an inode with a cleared attribute flag.
    #[error("inode {ino} says that it has no extended attributes, and has some")]
    XattrFlag {
        /// The inode.
        ino: Ino,
    },
    /// An extended attribute with a key that does not match the hash of its name.
    #[error(
        "the extended attribute {:?} of inode {ino} is not where its name is looked for",
        shown(name)
    )]
    XattrPlace {
        /// The inode.
        ino: Ino,
        /// Its name.
        name: Box<[u8]>,
    },
    /// An extended attribute that exists twice.
    #[error("inode {ino} has the extended attribute {:?} twice", shown(name))]
    SameXattr {
        /// The inode.
        ino: Ino,
        /// Its name.
        name: Box<[u8]>,
    },
    /// A value longer than its blocks.
    #[error("an extended attribute of inode {ino} has {len} bytes in {blocks} blocks")]
    ValueLength {
        /// The inode.
        ino: Ino,
        /// The value's length.
        len: u32,
        /// The number of its blocks.
        blocks: u32,
    },
}

impl Finding {
    /// A stable code for programs.
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

    /// The first block concerned.
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

    /// The inode concerned; for a name, its directory.
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

    /// The name concerned.
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
