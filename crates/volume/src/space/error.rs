use super::{Extent, SlotError};
use holdfast_types::Errno;
use std::fmt;
use thiserror::Error;

/// What would make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A commit: then freed data returns.
    Commit,
    /// A checkpoint: then replaced nodes return, and freed data too.
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

/// Why space was not given, taken back, or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// There is no room, and nothing that is on its way back would make enough: `ENOSPC`.
    #[error("no space left: {wanted} blocks wanted, {free} free")]
    Full {
        /// Blocks asked for.
        wanted: u64,
        /// Blocks that may be promised.
        free: u64,
    },
    /// There is no room now, but there may be after this. Not an error for whoever asked: do it
    /// and try again.
    #[error("no space left until {remedy}")]
    Later {
        /// What to do before the next attempt.
        remedy: Remedy,
    },
    /// Blocks that are in use were about to be used again.
    #[error("block {block} is used twice")]
    Used {
        /// The first of them.
        block: u64,
    },
    /// Blocks that nobody uses were about to be freed.
    #[error("block {block} is freed, but not used")]
    Unused {
        /// The first of them.
        block: u64,
    },
    /// An extent that no group holds.
    #[error("{extent} are not within one group")]
    Outside {
        /// The extent.
        extent: Extent,
    },
    /// A shape that no volume has.
    #[error("impossible layout: {reason}")]
    Layout {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The device gave no bitmaps.
    #[error("the bitmaps cannot be read: {reason}")]
    Unread {
        /// What the device said.
        reason: String,
        /// Its number.
        errno: Errno,
    },
    /// Neither slot of a group holds a bitmap that can be used.
    #[error("group {group} has no usable bitmap: {}; {}", slots[0], slots[1])]
    Group {
        /// Which group.
        group: u64,
        /// What is wrong with each slot.
        slots: [SlotError; 2],
    },
    /// The bitmaps are not those that the superblock knows: a newer one was lost.
    #[error("the bitmaps are not the ones of the checkpoint; {} groups are suspect", suspects.len())]
    Stale {
        /// Groups of which a slot could not be read, which may be the newer one.
        suspects: Vec<u64>,
    },
}
