use holdfast_core::store::{Change, Stamp};
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

/// One redo record: what the journal keeps and a replay gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A change as the core handed it over.
    Change(Change<'a>),
    /// Where a file's bytes went.
    Map(Map),
    /// The realm's high-water mark: no inode number above it is dealt before a higher mark is durable.
    Numbers(Ino),
}

/// What all records of one batch have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchHead {
    /// When it happened among all others.
    pub(super) stamp: Stamp,
    /// The realm whose numbers it uses.
    pub(super) realm: u64,
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
            Record::Map(_) | Record::Numbers(_) => None,
        }
    }

    fn as_map(&self) -> Option<&Map> {
        match self {
            Record::Map(map) => Some(map),
            Record::Change(_) | Record::Numbers(_) => None,
        }
    }

    fn as_numbers(&self) -> Option<Ino> {
        match *self {
            Record::Numbers(upto) => Some(upto),
            Record::Change(_) | Record::Map(_) => None,
        }
    }
}
