use holdfast_core::store::{Change, Lsn};
use holdfast_types::Ino;

/// Maps a run of a file's blocks to blocks on the device, which hold the data already.
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
    pub generation: u64,
    /// Space without content: it reads as zeros.
    pub unwritten: bool,
}

/// Bytes to be written over existing ones, once the commit's frames are in the device's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwrite<'a> {
    /// The block on the device.
    pub block: u64,
    /// Their offset in the block.
    pub from: usize,
    /// The bytes, which end in the block.
    pub data: &'a [u8],
}

/// One redo record, as the journal keeps it and a replay returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A change made by the core.
    Change(Change<'a>),
    /// The new place of file data.
    Map(Map),
    /// The high-water mark of inode numbers: none above it is given out before a higher mark is
    /// durable.
    Numbers(Ino),
    /// Bytes about to be written over existing ones.
    Overwrite(Overwrite<'a>),
}

/// The fields that all records of one batch share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchHead {
    /// Its place in the order of all batches.
    pub(super) lsn: Lsn,
    /// The subvolume of its inode numbers.
    pub(super) subvolume: u64,
}

/// A record to encode, borrowed.
pub enum RecordRef<'r> {
    /// A change of the core.
    Change(&'r Change<'r>),
    /// As in [`Record`].
    Map(&'r Map),
    /// As in [`Record`].
    Numbers(Ino),
    /// As in [`Record`].
    Overwrite(&'r Overwrite<'r>),
}

/// A change of the core, or a record of the journal.
pub trait AsRecord {
    /// Borrows it.
    fn as_record(&self) -> RecordRef<'_>;
}

impl AsRecord for Change<'_> {
    #[inline]
    fn as_record(&self) -> RecordRef<'_> {
        RecordRef::Change(self)
    }
}

impl AsRecord for Record<'_> {
    fn as_record(&self) -> RecordRef<'_> {
        match self {
            Record::Change(change) => RecordRef::Change(change),
            Record::Map(map) => RecordRef::Map(map),
            Record::Numbers(upto) => RecordRef::Numbers(*upto),
            Record::Overwrite(bytes) => RecordRef::Overwrite(bytes),
        }
    }
}
