//! The bitmaps as they lie on disk, for the check, for repair and for a developer's dump.

use super::slot::{self, Block, Slot};
use super::{Layout, SlotError};

/// The bitmap of a group that a superblock means.
#[derive(Debug)]
pub struct Recorded {
    /// A bit for each block of the group; bits behind them are set. `None`: all is free but the
    /// slots.
    pub words: Option<Box<[u64]>>,
    /// The slot of the bitmap.
    pub slot: Option<usize>,
    /// Its part of the seal's fingerprint.
    pub print: u64,
    /// The error of the other slot, or of slot 0 if there is no bitmap.
    pub other: Option<SlotError>,
}

impl Recorded {
    /// May the other slot have been the newer one?
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.other.as_ref().is_some_and(SlotError::is_damage)
    }
}

/// Takes the newer of a group's two bitmaps that a superblock of this generation may mean.
///
/// # Errors
/// The damage of the slots, if there is no bitmap and at least one slot is not blank.
pub fn recorded(
    layout: &Layout,
    group: u64,
    generation: u64,
    slots: [&Block; 2],
) -> Result<Recorded, [SlotError; 2]> {
    let read = |index: usize| slot::decode(layout, group, index, generation, slots[index]);
    let found = |index: usize, slot: Slot, other: Option<SlotError>| Recorded {
        slot: Some(index),
        print: slot::print(group, slot.generation, slot.checksum),
        words: Some(slot.words),
        other,
    };
    match (read(0), read(1)) {
        (Ok(one), Ok(other)) if one.generation > other.generation => Ok(found(0, one, None)),
        (Ok(_), Ok(other)) => Ok(found(1, other, None)),
        (Ok(one), Err(bad)) => Ok(found(0, one, Some(bad))),
        (Err(bad), Ok(other)) => Ok(found(1, other, Some(bad))),
        // Slot 0 is written first. If slot 1 is blank, slot 0 was written for a checkpoint that
        // never became valid, and the group is unused; otherwise the seal does not match.
        (Err(one), Err(other)) if other.is_blank() => Ok(Recorded {
            slot: None,
            words: None,
            print: 0,
            other: Some(one),
        }),
        (Err(one), Err(other)) => Err([one, other]),
    }
}
