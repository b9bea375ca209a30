//! Bitmaps as they lie on disk: one block, a header that describes it, one bit per block.

use super::layout::HEADER_SIZE;
use super::{Layout, SlotError, bits, map};
use crate::block::BLOCK;
use crate::checksum::{checksum, mix};
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 4] = *b"HFgb";

/// The bytes of one block.
pub type Block = [u8; BLOCK];

/// The header of a bitmap's block; `docs/format.md` explains the fields.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 4],
    blocks: U32,
    checksum: U64,
    address: U64,
    generation: U64,
    group: U64,
    free: U32,
    reserved: U32,
    volume: [u8; 16],
}

/// A bitmap that was read.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) generation: u64,
    pub(super) checksum: u64,
    pub(super) words: Box<[u64]>,
}

/// The superblock's summary of the bitmaps: detects a lost one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seal {
    /// Derived from the generation and checksum of every group's bitmap.
    pub fingerprint: u64,
    /// Free blocks of all groups.
    pub free: u64,
}

/// A bitmap's part of the superblock's fingerprint: differs by group, generation and content.
pub(super) fn print(group: u64, generation: u64, checksum: u64) -> u64 {
    // Not a checksum: those are linear, and two groups that lost the same change would cancel out.
    [group, generation, checksum]
        .iter()
        .fold(0, |state, &part| mix(state ^ part))
}

/// Where the checksum lies in a block.
const CHECKSUM: std::ops::Range<usize> = 8..16;

/// The block to write to a slot, and its part of the seal's fingerprint.
pub(crate) fn encode(
    layout: &Layout,
    group: u64,
    slot: usize,
    generation: u64,
    words: &[u64],
) -> (Box<Block>, u64) {
    let length = layout.group(group).length as u32;
    let header = Header {
        magic: MAGIC,
        blocks: U32::new(length),
        checksum: U64::new(0),
        address: U64::new(layout.slot(group, slot)),
        generation: U64::new(generation),
        group: U64::new(group),
        free: U32::new(length - bits::count(words, 0, length)),
        reserved: U32::new(0),
        volume: layout.volume,
    };
    let mut block = Box::new([0xff; BLOCK]);
    let (head, body) = block.split_at_mut(HEADER_SIZE);
    head.copy_from_slice(header.as_bytes());
    for (bytes, word) in body.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let sum = checksum(block.as_slice(), CHECKSUM);
    block[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
    (block, print(group, generation, sum))
}

/// Reads one slot of a group; bitmaps newer than `generation` were never completed.
pub(super) fn decode(
    layout: &Layout,
    group: u64,
    slot: usize,
    generation: u64,
    bytes: &Block,
) -> Result<Slot, SlotError> {
    let block = layout.slot(group, slot);
    let blank = SlotError::Blank { block };
    let (header, body) = Header::ref_from_prefix(bytes).map_err(|_| blank)?;
    if header.magic != MAGIC || header.volume != layout.volume {
        return Err(blank);
    }
    let (expected, found) = (checksum(bytes, CHECKSUM), header.checksum.get());
    if expected != found {
        return Err(SlotError::Checksum {
            block,
            expected,
            found,
        });
    }
    if header.address.get() != block {
        return Err(SlotError::Misplaced {
            block,
            address: header.address.get(),
        });
    }
    if header.generation.get() > generation {
        return Err(SlotError::Unfinished {
            block,
            generation: header.generation.get(),
        });
    }
    let refuse = |reason| Err(SlotError::Contradiction { block, reason });
    if header.group.get() != group {
        return refuse("the bitmap is of another group");
    }
    // The group may have grown since: its new blocks are free.
    let (then, now) = (header.blocks.get(), layout.group(group).length as u32);
    if then > now || header.reserved.get() != 0 {
        return refuse("the bitmap is of a larger group");
    }
    let mut words = map::blank_words(now);
    let end = words.len() as u32 * 64;
    for (word, bytes) in words.iter_mut().zip(body.chunks_exact(8)) {
        *word = bytes.try_into().map_or(u64::MAX, u64::from_le_bytes);
    }
    if bits::next_clear(&words, then, end) != end {
        return refuse("blocks behind the last one are free");
    }
    if then - bits::count(&words, 0, then) != header.free.get() {
        return refuse("the number of free blocks is wrong");
    }
    let reserved = layout.reserved(group) as u32;
    if bits::count(&words, 0, reserved) != reserved {
        return refuse("the blocks of bitmaps are free");
    }
    bits::clear(&mut words, then, now);
    Ok(Slot {
        generation: header.generation.get(),
        checksum: expected,
        words,
    })
}
