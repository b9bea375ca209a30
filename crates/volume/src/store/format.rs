//! Formatting a volume.

use std::sync::Arc;
use std::time::SystemTime;

use holdfast_device::BlockDevice;
use holdfast_types::Time;
use uuid::Uuid;

use super::probe::{BLOCKS_MIN, fits};
use super::reservation::reserve_wanted;
use crate::block::BLOCK;
use crate::error::{Error, Result};
use crate::journal::{Journal, Position};
use crate::space::{BUNDLE_MAX, GROUP_BLOCKS_MAX, GROUP_BLOCKS_MIN, SLOT_BLOCKS, Seal, Space};
use crate::superblock::{Features, Label, Roots, SLOTS, Superblock};

/// Blocks before the journal: the superblocks, and space reserved for others.
const HEAD_BLOCKS: u64 = 16;
/// The journal's part of a volume, within the bounds below.
const JOURNAL_PART: u64 = 64;
/// Fewest blocks of a journal: 512 KiB.
const JOURNAL_MIN: u64 = 128;
/// Most blocks of a journal, unless asked for: 128 MiB.
const JOURNAL_MAX: u64 = 32_768;
/// Blocks that the first transactions write, generously.
const FIRST_BLOCKS: u64 = 64;
/// How to format a volume.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormatOptions {
    /// The volume's name.
    pub label: Label,
    /// Bytes of the journal; by the size of the volume if absent.
    pub journal: Option<u64>,
    /// Blocks of a group; the maximum if absent.
    pub group_blocks: Option<u64>,
    /// The number of groups, approximately and at most, if `group_blocks` is absent; the minimum if
    /// both are.
    pub groups: Option<u64>,
    /// Groups of a flex group: their bitmaps are adjacent, so that extents can cross these groups;
    /// by the size of the volume if absent.
    pub bundle: Option<u64>,
    /// The source of UUID and secrets, for reproducible volumes in tests; random if absent, as it
    /// must be otherwise.
    pub seed: Option<u64>,
}

impl FormatOptions {
    /// The `nth` UUID of this volume.
    fn unique(&self, nth: u64) -> Uuid {
        match self.seed {
            Some(seed) => Uuid::from_u64_pair(seed.wrapping_add(1).wrapping_mul(SPREAD), nth),
            None => Uuid::new_v4(),
        }
    }
}

/// An odd number with its bits well mixed.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Space that a new volume takes on its host, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Written by the format, from block 0 on.
    pub head: u64,
    /// Written or reserved by the first open.
    pub opened: u64,
}

/// The space that a volume of this size takes on its host at first.
///
/// # Errors
/// [`Error::Geometry`] as [`format()`] has it.
pub fn needs(size: u64, options: &FormatOptions) -> Result<Needs> {
    let superblock = plan(size, options)?;
    Ok(Needs {
        head: superblock.groups_start * BLOCK as u64,
        opened: (reserve_wanted(superblock.blocks) + FIRST_BLOCKS) * BLOCK as u64,
    })
}

/// Formats the whole device as an empty volume. All previous contents are lost.
///
/// # Errors
/// [`Error::Geometry`] if the device is too small, or the options contradict each other;
/// [`Error::Device`].
pub fn format(device: &Arc<dyn BlockDevice>, options: &FormatOptions) -> Result<()> {
    fits(device)?;
    let superblock = plan(device.size(), options)?;
    // Erase the old superblocks first.
    for slot in SLOTS {
        device.write(slot * BLOCK as u64, &[0; BLOCK])?;
    }
    wipe(device, superblock.blocks)?;
    device.flush()?;
    Journal::format(Arc::clone(device), superblock.region())?;
    for slot in SLOTS {
        device.write(slot * BLOCK as u64, &superblock.encode(slot))?;
    }
    device.flush()?;
    Ok(())
}

/// The superblock of a new volume of `size` bytes.
fn plan(size: u64, options: &FormatOptions) -> Result<Superblock> {
    let blocks = size / BLOCK as u64;
    if blocks < BLOCKS_MIN {
        return Err(Error::Geometry(format!(
            "{} bytes are too few for a volume: give it {} at least",
            size,
            BLOCKS_MIN * BLOCK as u64
        )));
    }
    let journal_blocks = match options.journal {
        Some(bytes) => bytes / BLOCK as u64,
        None => (blocks / JOURNAL_PART).clamp(JOURNAL_MIN, JOURNAL_MAX),
    };
    let groups_start = HEAD_BLOCKS.saturating_add(journal_blocks);
    if journal_blocks < JOURNAL_MIN || groups_start > blocks / 2 {
        return Err(Error::Geometry(format!(
            "a journal of {} bytes: it takes {} at least, and half of the volume at most",
            journal_blocks.saturating_mul(BLOCK as u64),
            JOURNAL_MIN * BLOCK as u64
        )));
    }
    let group_blocks = match (options.group_blocks, options.groups) {
        (Some(group_blocks), _) => group_blocks,
        (None, Some(groups)) => group_blocks_for(groups, blocks - groups_start)?,
        (None, None) => GROUP_BLOCKS_MAX,
    };
    let group_blocks = u32::try_from(group_blocks)
        .map_err(|_| Error::Geometry(format!("groups of {group_blocks} blocks")))?;
    let bundle = match options.bundle {
        Some(bundle) => bundle,
        None => bundle_for(blocks - groups_start, u64::from(group_blocks)),
    };
    let bundle = u32::try_from(bundle)
        .map_err(|_| Error::Geometry(format!("bundles of {bundle} groups")))?;
    let now = Time::from(SystemTime::now());
    let mut superblock = Superblock {
        uuid: options.unique(0),
        label: options.label,
        features: Features::default(),
        blocks,
        group_blocks,
        bundle,
        journal_start: HEAD_BLOCKS,
        journal_blocks,
        groups_start,
        generation: 1,
        created: now,
        written: now,
        clean: true,
        journal_position: Position::default(),
        journal_secret: options.unique(1).as_u64_pair().1,
        seal: Seal::default(),
        last_ino: 1,
        hash_seed: options.unique(2).as_u64_pair().1,
        inodes: 0,
        roots: Roots::default(),
        orphans: None,
        shared: None,
    };
    // Groups without a bitmap are free; a bitmap of another volume is not valid here.
    superblock.seal = Space::format(superblock.layout())?.seal();
    Ok(superblock)
}

/// The size of each of `groups` groups.
fn group_blocks_for(groups: u64, blocks: u64) -> Result<u64> {
    let (least, most) = (blocks.div_ceil(GROUP_BLOCKS_MAX), blocks / GROUP_BLOCKS_MIN);
    if !(least..=most).contains(&groups) {
        return Err(Error::Geometry(format!(
            "{groups} groups: a volume of this size has {least} to {most}"
        )));
    }
    // The last group may vanish, but there are never more.
    Ok(blocks.div_ceil(groups))
}

/// Groups a flex group: all of a small volume, as long as their bitmaps take at most a sixteenth of
/// a group.
fn bundle_for(blocks: u64, group_blocks: u64) -> u64 {
    let groups = blocks.div_ceil(group_blocks.max(1));
    let most = (group_blocks / (16 * SLOT_BLOCKS))
        .min(groups)
        .clamp(1, BUNDLE_MAX);
    // The largest power of two.
    1 << most.ilog2()
}

/// Clears other formats' signatures: magic numbers after the superblocks, and the backup partition
/// table in the last block. The journal overwrites what follows.
fn wipe(device: &Arc<dyn BlockDevice>, blocks: u64) -> Result<()> {
    let behind = SLOTS.len() as u64..HEAD_BLOCKS;
    for block in behind.chain([blocks - 1]) {
        let mut bytes = [0; BLOCK];
        device.read(block * BLOCK as u64, &mut bytes)?;
        // Zeros stay holes of an image file.
        if bytes.iter().any(|byte| *byte != 0) {
            device.write(block * BLOCK as u64, &[0; BLOCK])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::newest_superblock as superblock;
    use holdfast_device::{Content, MemoryDevice, content};

    fn device() -> Arc<dyn BlockDevice> {
        Arc::new(MemoryDevice::new(64 << 20))
    }

    #[test]
    fn nothing_tells_of_what_was_there() {
        let device = device();
        device.write(0, &vec![0xaa; 64 << 20]).unwrap();
        device.write(0x8000, b"\x01CD001").unwrap_err();
        let mut sector = [0; 512];
        sector[1..6].copy_from_slice(b"CD001");
        device.write(0x8000, &sector).unwrap();
        assert_eq!(
            content(&*device),
            Ok(Content::Known("an ISO 9660 file system"))
        );
        format(&device, &FormatOptions::default()).unwrap();
        assert_eq!(content(&*device), Ok(Content::Known("a Holdfast volume")));
        let mut last = [1; 4096];
        device.read((64 << 20) - 4096, &mut last).unwrap();
        assert_eq!(last, [0; 4096]);
        device.read(0x8000, &mut sector).unwrap();
        assert_eq!(sector, [0; 512]);
    }

    #[test]
    fn bitmaps_lie_together_where_there_are_several_groups_with_room_for_them() {
        for (group_blocks, bundle, expected) in [
            (None, None, Some(1)),
            (Some(4096), None, Some(4)),
            (Some(64), None, Some(2)),
            (Some(16), None, Some(1)),
            (Some(512), None, Some(16)),
            (Some(512), Some(1), Some(1)),
            (Some(512), Some(3), Some(3)),
            (Some(512), Some(65), None),
            (Some(16), Some(2), None),
        ] {
            let device = device();
            let options = FormatOptions {
                group_blocks,
                bundle,
                ..FormatOptions::default()
            };
            let made = format(&device, &options);
            let found = made.map(|()| superblock(&device).unwrap().bundle);
            assert_eq!(found.ok(), expected, "{group_blocks:?}, {bundle:?}");
        }
    }

    #[test]
    fn the_number_of_groups_is_about_what_was_asked_for() {
        for groups in [1, 2, 7, 100, 1000] {
            let device = device();
            let options = FormatOptions {
                groups: Some(groups),
                ..FormatOptions::default()
            };
            format(&device, &options).unwrap();
            let found = superblock(&device).unwrap().layout().groups();
            assert!(
                found <= groups && found * 10 > groups * 9,
                "{groups}: {found}"
            );
        }
        for groups in [0, 1 << 20] {
            let options = FormatOptions {
                groups: Some(groups),
                ..FormatOptions::default()
            };
            let refused = format(&device(), &options);
            assert!(matches!(refused, Err(Error::Geometry(_))), "{groups}");
        }
    }
}
