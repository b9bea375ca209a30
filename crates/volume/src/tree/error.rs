//! Errors of a tree.

use holdfast_types::Errno;
use std::fmt;

/// A defect of a node, found by lookups, merges and checks alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Defect {
    /// The device cannot read it.
    Unreadable {
        /// The device's error.
        errno: Errno,
    },
    /// The pointer leads outside the device, or no node has its length.
    Pointer,
    /// It does not begin like a node.
    Magic,
    /// The checksum does not match.
    Checksum,
    /// It belongs to another volume, perhaps an earlier one of this device.
    Volume {
        /// The identity in the node.
        found: u32,
    },
    /// It belongs to another block: a misdirected write.
    Address {
        /// The block in the node.
        found: u64,
    },
    /// It was not written in the pointer's generation: a lost write, or a stale pointer.
    Generation {
        /// The pointer's generation.
        expected: u64,
        /// The node's generation.
        found: u64,
    },
    /// It is newer than the superblock that leads to it.
    Future {
        /// Its generation.
        found: u64,
        /// The superblock's generation.
        newest: u64,
    },
    /// It belongs to another kind of tree.
    Kind {
        /// The kind in the node.
        found: u8,
    },
    /// It is not of the level below its parent's.
    Level {
        /// The level of its place.
        expected: u8,
        /// The level in the node.
        found: u8,
    },
    /// Lengths and counts in its header contradict each other.
    Layout,
    /// A record that no writer produces.
    Record,
    /// Keys that do not ascend.
    Order,
    /// Keys outside the range of its place.
    Range,
    /// Nonzero bytes in the padding.
    Padding,
    /// The root's count of records is wrong.
    Count {
        /// The root's count.
        expected: u64,
        /// What was found.
        found: u64,
    },
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unreadable { errno } => write!(f, "it cannot be read: {errno:?}"),
            Self::Pointer => f.write_str("its pointer leads nowhere"),
            Self::Magic => f.write_str("it is not a tree node"),
            Self::Checksum => f.write_str("its checksum is wrong"),
            Self::Volume { found } => write!(f, "it belongs to another volume, {found:#010x}"),
            Self::Address { found } => write!(f, "it says it is block {found}"),
            Self::Generation { expected, found } => {
                write!(f, "it is of generation {found}, not {expected}")
            }
            Self::Future { found, newest } => {
                write!(f, "it is of generation {found}, the volume of {newest}")
            }
            Self::Kind { found } => write!(f, "it belongs to a tree of kind {found}"),
            Self::Level { expected, found } => {
                write!(f, "it is of level {found}, not {expected}")
            }
            Self::Layout => f.write_str("its lengths contradict each other"),
            Self::Record => f.write_str("it has a record that is none"),
            Self::Order => f.write_str("its keys do not ascend"),
            Self::Range => f.write_str("its keys lie outside its parent's range"),
            Self::Padding => f.write_str("its unused bytes are not zero"),
            Self::Count { expected, found } => {
                write!(f, "{found} records hang below it, not {expected}")
            }
        }
    }
}

/// An error of reading or changing a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device failed.
    #[error("tree node at block {block}: {errno:?}")]
    Device {
        /// Block of the node.
        block: u64,
        /// The device's error.
        errno: Errno,
    },
    /// There is no space for a new node.
    #[error("no space for a tree node")]
    NoSpace,
    /// The bytes read are not those written.
    #[error("tree node at block {block}: {defect}")]
    Corrupt {
        /// Block of the node.
        block: u64,
        /// The defect.
        defect: Defect,
    },
    /// The changes of a merge do not ascend strictly; the tree was not changed.
    #[error("changes of a tree out of order")]
    Unsorted,
    /// A record that cannot be stored: too long, or a field out of its range.
    #[error("a record that no tree can hold")]
    Unstorable,
}

impl Error {
    pub(super) fn corrupt(block: u64, defect: Defect) -> Self {
        Self::Corrupt { block, defect }
    }
}

/// A result with an [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
