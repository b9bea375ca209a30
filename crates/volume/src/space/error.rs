use super::Extent;
use holdfast_types::Errno;
use std::fmt;
use thiserror::Error;

/// The action that frees deferred blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A commit: frees deleted data.
    Commit,
    /// A checkpoint: frees replaced nodes, and deleted data.
    Checkpoint,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Commit => "a commit",
            Self::Checkpoint => "a checkpoint",
        })
    }
}

/// An error of the allocator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// No room, and no deferred blocks that would make enough: `ENOSPC`.
    #[error("no space left: {wanted} blocks wanted, {free} free")]
    Full {
        /// Blocks requested.
        wanted: u64,
        /// Blocks that can be reserved.
        free: u64,
    },
    /// No room now, but perhaps after the remedy. Not an error for the caller: apply it and try
    /// again.
    #[error("no space left until {remedy}")]
    Later {
        /// The action before the next attempt.
        remedy: Remedy,
    },
    /// Blocks in use were about to be allocated again.
    #[error("block {block} is used twice")]
    Used {
        /// The first of them.
        block: u64,
    },
    /// Unused blocks were about to be freed.
    #[error("block {block} is freed, but not used")]
    Unused {
        /// The first of them.
        block: u64,
    },
    /// An extent outside all groups.
    #[error("{extent} are not within one group")]
    Outside {
        /// The extent.
        extent: Extent,
    },
    /// An impossible layout.
    #[error("impossible layout: {reason}")]
    Layout {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The device returned no bitmaps.
    #[error("the bitmaps cannot be read: {reason}")]
    Unread {
        /// The device's error.
        reason: String,
        /// Its errno.
        errno: Errno,
    },
    /// Neither slot of a group holds a usable bitmap.
    #[error("group {group} has no usable bitmap: {}; {}", slots[0], slots[1])]
    Group {
        /// Which group.
        group: u64,
        /// What is wrong with each slot.
        slots: [SlotError; 2],
    },
    /// The bitmaps do not match the superblock: a newer one was lost.
    #[error("the bitmaps are not the ones of the checkpoint; {} groups are suspect", suspects.len())]
    Stale {
        /// Groups with an unreadable slot, which may be the newer one.
        suspects: Vec<u64>,
    },
}

/// Damage of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SlotError {
    /// No bitmap of this volume was ever written there.
    #[error("block {block} is not a bitmap of this volume")]
    Blank {
        /// The slot's block.
        block: u64,
    },
    /// The bytes are not those written.
    #[error("block {block} has the checksum {found:#x} instead of {expected:#x}")]
    Checksum {
        /// The slot's block.
        block: u64,
        /// The checksum of the bytes.
        expected: u64,
        /// The checksum in the header.
        found: u64,
    },
    /// A bitmap that belongs elsewhere.
    #[error("block {block} holds what belongs at {address}")]
    Misplaced {
        /// The slot's block.
        block: u64,
        /// Where the header says it belongs.
        address: u64,
    },
    /// The fields contradict each other or the volume.
    #[error("block {block}: {reason}")]
    Contradiction {
        /// The slot's block.
        block: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// A bitmap of a checkpoint that never became valid.
    #[error("block {block} is of generation {generation}, which was never finished")]
    Unfinished {
        /// The slot's block.
        block: u64,
        /// Which generation.
        generation: u64,
    },
}

impl SlotError {
    /// Can a group that was never written have this content?
    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Self::Blank { .. })
    }

    /// May this have been the newest valid bitmap?
    pub(super) fn is_damage(&self) -> bool {
        !matches!(self, Self::Blank { .. } | Self::Unfinished { .. })
    }
}
