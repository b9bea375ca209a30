//! The bitmaps as they lie on disk, for those who only look at them.

use super::slot::{self, Block, Slot};
use super::{Layout, SlotError};

/// What the bitmap says that a superblock means.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// A bit for each block of the group, and set ones behind them; absent: all is free but the slots.
    pub(crate) words: Option<Box<[u64]>>,
    /// The slot in which it lies.
    pub(crate) slot: Option<usize>,
    /// Its part of the seal's fingerprint.
    pub(crate) print: u64,
    /// What is wrong with a slot that may have been the newer one.
    pub(crate) suspect: Option<SlotError>,
}

/// The block to write to a slot, and its part of the seal's fingerprint.
pub(crate) fn slot_image(
    layout: &Layout,
    group: u64,
    slot: usize,
    generation: u64,
    words: &[u64],
) -> (Box<Block>, u64) {
    let (block, checksum) = slot::encode(layout, group, slot, generation, words);
    (block, slot::print(group, generation, checksum))
}

/// Takes the newer of a group's two bitmaps that a superblock of this generation may mean.
///
/// # Errors
/// What is wrong with the slots, if there is no bitmap, and something else.
pub(crate) fn recorded(
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
        suspect: other.filter(SlotError::is_damage),
    };
    match (read(0), read(1)) {
        (Ok(one), Ok(other)) if one.generation > other.generation => Ok(found(0, one, None)),
        (Ok(_), Ok(other)) => Ok(found(1, other, None)),
        (Ok(one), Err(bad)) => Ok(found(0, one, Some(bad))),
        (Err(bad), Ok(other)) => Ok(found(1, other, Some(bad))),
        (Err(one), Err(other)) if other.is_blank() => Ok(Recorded {
            slot: None,
            words: None,
            print: 0,
            suspect: Some(one).filter(SlotError::is_damage),
        }),
        (Err(one), Err(other)) => Err([one, other]),
    }
}
