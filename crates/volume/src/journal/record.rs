use holdfast_core::store::{Change, Lsn};
use holdfast_types::Ino;

/// A run of a file's blocks lies here from now on: bytes that are already on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// The file.
    pub ino: Ino,
    /// The run's first block in the file.
    pub offset: u64,
    /// Its first block on the device.
    pub start: u64,
    /// Its length in blocks.
    pub blocks: u64,
    /// The generation in which the space was taken.
    pub birth: u64,
    /// Space without content: it reads as zeros.
    pub unwritten: bool,
}

/// Bytes that go over others where these lie, once the commit's frames are in the device's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwrite<'a> {
    /// The block on the device.
    pub block: u64,
    /// Where in the block they begin.
    pub from: usize,
    /// The bytes, which end in the block.
    pub data: &'a [u8],
}

/// One redo record: what the journal keeps and a replay gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A change as the core handed it over.
    Change(Change<'a>),
    /// Where a file's bytes went.
    Map(Map),
    /// The realm's high-water mark: no inode number above it is dealt before a higher mark is durable.
    Numbers(Ino),
    /// Bytes that were about to be written over others.
    Overwrite(Overwrite<'a>),
}

/// What all records of one batch have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchHead {
    /// When it happened among all others.
    pub(super) lsn: Lsn,
    /// The realm whose numbers it uses.
    pub(super) subvolume: u64,
}

/// What an encoder takes: a change where it lies, or a record.
pub(super) trait AsRecord {
    fn as_change(&self) -> Option<&Change<'_>>;

    fn as_map(&self) -> Option<&Map> {
        None
    }

    fn as_numbers(&self) -> Option<Ino> {
        None
    }

    fn as_overwrite(&self) -> Option<&Overwrite<'_>> {
        None
    }
}

impl AsRecord for Change<'_> {
    #[inline]
    fn as_change(&self) -> Option<&Change<'_>> {
        Some(self)
    }
}

impl AsRecord for Record<'_> {
    fn as_change(&self) -> Option<&Change<'_>> {
        match self {
            Record::Change(change) => Some(change),
            Record::Map(_) | Record::Numbers(_) | Record::Overwrite(_) => None,
        }
    }

    fn as_map(&self) -> Option<&Map> {
        match self {
            Record::Map(map) => Some(map),
            Record::Change(_) | Record::Numbers(_) | Record::Overwrite(_) => None,
        }
    }

    fn as_numbers(&self) -> Option<Ino> {
        match *self {
            Record::Numbers(upto) => Some(upto),
            Record::Change(_) | Record::Map(_) | Record::Overwrite(_) => None,
        }
    }

    fn as_overwrite(&self) -> Option<&Overwrite<'_>> {
        match self {
            Record::Overwrite(bytes) => Some(bytes),
            Record::Change(_) | Record::Map(_) | Record::Numbers(_) => None,
        }
    }
}
