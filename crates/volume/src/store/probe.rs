//! What is on a device: the superblock of a volume, or something else.

use std::sync::Arc;

use holdfast_device::{BlockDevice, Content, content};

use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::superblock::{SLOTS, SlotError, Superblock};

/// Fewest blocks of a volume: 2 MiB.
pub const BLOCKS_MIN: u64 = 512;

/// Checks that the device is as long as the volume on it.
pub(super) fn has_all(device: &Arc<dyn BlockDevice>, blocks: u64) -> Result<()> {
    let found = device.size() / BLOCK as u64;
    if found < blocks {
        return Err(Error::CutShort {
            device: device.describe(),
            found,
            expected: blocks,
        });
    }
    Ok(())
}

/// Refuses a volume with read-only compatible features: this version knows none.
pub(crate) fn may_change(device: &Arc<dyn BlockDevice>) -> Result<()> {
    match read_superblock(device)?.0.features.read_only_compatible {
        0 => Ok(()),
        features => Err(Error::ReadOnlyFeatures {
            device: device.describe(),
            features,
        }),
    }
}

/// Refuses a device that cannot write a single block.
pub(super) fn fits(device: &Arc<dyn BlockDevice>) -> Result<()> {
    let alignment = device.alignment();
    if alignment > BLOCK as u64 {
        return Err(Error::Geometry(format!(
            "{} moves no less than {alignment} bytes at once, and a volume has blocks of {BLOCK}",
            device.describe()
        )));
    }
    Ok(())
}

/// The newest valid superblock, and the slots that do not hold it.
pub(super) fn read_superblock(device: &Arc<dyn BlockDevice>) -> Result<(Superblock, Vec<u64>)> {
    let mut bytes = [0; SLOTS.len() * BLOCK];
    let there = device.size().min(bytes.len() as u64) as usize / BLOCK * BLOCK;
    device.read(0, &mut bytes[..there])?;
    let (blocks, _) = bytes[..there].as_chunks::<BLOCK>();
    let [one, other] = SLOTS.map(|slot| match blocks.get(slot as usize) {
        Some(block) => Superblock::decode(block, slot),
        None => Err(SlotError::Magic),
    });
    let newest = match (&one, &other) {
        (Ok(one), Ok(other)) if other.generation > one.generation => other,
        (Ok(one), _) => one,
        (Err(_), Ok(other)) => other,
        (Err(SlotError::Magic), Err(SlotError::Magic)) => return Err(no_volume(device)),
        (Err(one), Err(other)) => {
            return Err(Error::Superblock {
                device: device.describe(),
                slots: [one.clone(), other.clone()],
            });
        }
    };
    let slots = SLOTS.into_iter().zip([&one, &other]);
    let behind = slots.filter(|(_, found)| found.as_ref() != Ok(newest));
    let behind = behind.map(|(slot, _)| slot).collect();
    Ok((newest.clone(), behind))
}

/// Names what a device without a superblock holds.
fn no_volume(device: &Arc<dyn BlockDevice>) -> Error {
    let instead = match content(&**device) {
        _ if device.size() < BLOCKS_MIN * BLOCK as u64 => ": it is too short for one".to_owned(),
        Ok(Content::Known(name)) => format!(", but {name}"),
        Ok(Content::Nothing) => ": it begins with zeros".to_owned(),
        Ok(Content::Unknown) => ": it begins with something else".to_owned(),
        Err(error) => format!(", or none that can be read: {error}"),
    };
    Error::NoVolume {
        device: device.describe(),
        instead,
    }
}

/// The valid superblock of a device. Its counts are those of the last checkpoint.
///
/// # Errors
/// [`Error::Superblock`] if there is none; those of the device.
pub fn newest_superblock(device: &Arc<dyn BlockDevice>) -> Result<Superblock> {
    Ok(read_superblock(device)?.0)
}
