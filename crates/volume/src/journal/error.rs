use holdfast_device::DeviceError;

/// A result with a journal's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No room until a checkpoint trims. Nothing was appended, and the same call may succeed later.
    #[error("the journal is full")]
    Full,
    /// One batch larger than the journal can ever take.
    #[error("a change of {blocks} blocks in a journal that takes {most}")]
    TooLarge {
        /// Blocks of the batch.
        blocks: u64,
        /// Blocks that an empty journal has for it.
        most: u64,
    },
    /// A commit failed before; the journal takes nothing more.
    #[error("the journal failed earlier")]
    Failed,
    /// The region is too small, or reaches past the device.
    #[error("a journal of {blocks} blocks at block {start}: {reason}")]
    Region {
        /// Its first block.
        start: u64,
        /// Its length in blocks.
        blocks: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Bytes that were committed are damaged.
    #[error("journal block {block}: {reason}")]
    Corrupt {
        /// The block on the device.
        block: u64,
        /// What is wrong with it.
        reason: Reason,
    },
    /// The record is whole, but a later Holdfast wrote it.
    #[error(
        "journal block {block}: operation {operation}, which this Holdfast does not know: use a newer one"
    )]
    Newer {
        /// The block on the device where its frame begins.
        block: u64,
        /// The operation's number.
        operation: u8,
    },
}

/// What is wrong with a journal block that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A later block says that this one was durable.
    #[error("it was committed and cannot be read back")]
    Hole,
    /// The checksum is right and a record makes no sense.
    #[error("malformed record")]
    Record,
    /// A part of a batch without the others, or beside a part of another batch.
    #[error("a batch in pieces that do not belong together")]
    Pieces,
    /// LSNs of a log buffer that decrease.
    #[error("stamps out of order")]
    Order,
}
