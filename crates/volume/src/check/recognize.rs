//! Recognizes a volume before it is checked.

use std::sync::Arc;

use holdfast_device::BlockDevice;

use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::store::newest_superblock;
use crate::superblock::SlotError;

/// The part of a device searched without a superblock: the journal, and nodes and bitmaps behind
/// it.
const LOOKED_AT: u64 = 160 << 20;
/// Bytes that are read at once.
const PIECE: u64 = 1 << 20;
/// Magic numbers of blocks: bitmaps, tree nodes, frames of the journal.
const BEGINNINGS: [[u8; 4]; 3] = [*b"HFgb", *b"HfTn", *b"HFJf"];

/// Distinguishes a volume, whole or damaged, from other content. Both superblocks may be lost.
///
/// # Errors
/// [`Error::NoVolume`]; [`Error::Superblock`] for a volume of another version of the format; those
/// of the device.
pub fn recognize(device: &Arc<dyn BlockDevice>) -> Result<()> {
    match newest_superblock(device) {
        Err(Error::Superblock { slots, .. }) if !slots.iter().any(SlotError::is_other_version) => {
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(Error::NoVolume { .. }) if has_blocks_of_a_volume(device)? => Ok(()),
        Err(error) => Err(error),
    }
}

fn has_blocks_of_a_volume(device: &Arc<dyn BlockDevice>) -> Result<bool> {
    let end = device.size().min(LOOKED_AT) / BLOCK as u64 * BLOCK as u64;
    let mut piece = vec![0; PIECE as usize];
    for at in (0..end).step_by(PIECE as usize) {
        let length = PIECE.min(end - at) as usize;
        let bytes = piece.get_mut(..length).unwrap_or_default();
        device.read(at, bytes)?;
        let (blocks, _) = bytes.as_chunks::<BLOCK>();
        let mut beginnings = blocks.iter().filter_map(|block| block.first_chunk());
        if beginnings.any(|begins| BEGINNINGS.contains(begins)) {
            return Ok(true);
        }
    }
    Ok(false)
}
