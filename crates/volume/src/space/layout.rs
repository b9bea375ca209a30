use super::slot::BITS;
use super::{Error, Extent};

/// Blocks at the head of each group that hold the two slots of its bitmap.
pub const SLOT_BLOCKS: u64 = 2;

/// Most blocks of a group: as many as a bitmap of one block has bits (126 MiB).
pub const GROUP_BLOCKS_MAX: u64 = BITS as u64;

/// Fewest blocks of a group that is of any use.
pub const GROUP_BLOCKS_MIN: u64 = 16;

/// Most groups of a volume (516 TiB of the largest ones): a bound for what is kept in memory.
pub const GROUPS_MAX: u64 = 1 << 22;

/// Block numbers have 48 bits.
const BLOCKS_MAX: u64 = 1 << 48;

/// Where the groups lie: from `start` on, one behind the other, the last one maybe shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What tells this volume's bitmaps from those of another that was here before.
    pub volume: [u8; 16],
    /// The first block of the first group. What lies below is not ours.
    pub start: u64,
    /// The number behind the last block of the volume.
    pub end: u64,
    /// Blocks of each group, [`GROUP_BLOCKS_MIN`] to [`GROUP_BLOCKS_MAX`].
    pub group_blocks: u64,
}

impl Layout {
    /// Checks it: it may come from disk.
    ///
    /// # Errors
    /// [`Error::Layout`] if it makes no volume.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |reason| Err(Error::Layout { reason });
        if !(GROUP_BLOCKS_MIN..=GROUP_BLOCKS_MAX).contains(&self.group_blocks) {
            return refuse("groups of this size");
        }
        if self.end > BLOCKS_MAX || self.end <= self.start {
            return refuse("groups beyond the last block number");
        }
        match self.groups() {
            0 => refuse("no room for one group"),
            groups if groups > GROUPS_MAX => refuse("too many groups"),
            _ => Ok(()),
        }
    }

    /// How many groups there are. A rest too short for one is left out.
    #[must_use]
    pub fn groups(&self) -> u64 {
        let blocks = self.end.saturating_sub(self.start);
        let (whole, rest) = (blocks / self.group_blocks, blocks % self.group_blocks);
        whole + u64::from(rest >= GROUP_BLOCKS_MIN)
    }

    /// Blocks of all groups that something can be placed in.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let blocks = self.end.saturating_sub(self.start);
        let rest = blocks % self.group_blocks;
        let unused = if rest < GROUP_BLOCKS_MIN { rest } else { 0 };
        (blocks - unused).saturating_sub(self.groups() * SLOT_BLOCKS)
    }

    /// The blocks of a group.
    #[must_use]
    pub fn group(&self, group: u64) -> Extent {
        let start = self.start + group * self.group_blocks;
        Extent::new(start, self.group_blocks.min(self.end.saturating_sub(start)))
    }

    /// Which group holds this block, and where in it; `None` below or behind all groups.
    #[must_use]
    pub fn find(&self, block: u64) -> Option<(u64, u32)> {
        let offset = block.checked_sub(self.start)?;
        let group = offset / self.group_blocks;
        let within = u32::try_from(offset % self.group_blocks).ok()?;
        (block < self.end && group < self.groups()).then_some((group, within))
    }

    /// Which group holds all of this extent, and where in it. Its slots are in no extent.
    ///
    /// # Errors
    /// [`Error::Outside`].
    pub fn locate(&self, extent: Extent) -> Result<(u64, u32, u32), Error> {
        let outside = Error::Outside { extent };
        let Some((group, offset)) = self.find(extent.start) else {
            return Err(outside);
        };
        let room = self.group(group).length - u64::from(offset);
        match u32::try_from(extent.length) {
            Ok(length @ 1..) if u64::from(length) <= room && u64::from(offset) >= SLOT_BLOCKS => {
                Ok((group, offset, length))
            }
            _ => Err(outside),
        }
    }

    /// The block of one of a group's two slots.
    #[must_use]
    pub fn slot(&self, group: u64, slot: usize) -> u64 {
        self.group(group).start + slot as u64 % SLOT_BLOCKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(start: u64, end: u64, group_blocks: u64) -> Layout {
        Layout {
            volume: [7; 16],
            start,
            end,
            group_blocks,
        }
    }

    #[test]
    fn the_last_group_takes_what_is_left() {
        let layout = layout(5, 5 + 2 * 64 + 20, 64);
        assert_eq!(layout.groups(), 3);
        assert_eq!(layout.group(2), Extent::new(5 + 128, 20));
        assert_eq!(layout.find(5 + 128 + 19), Some((2, 19)));
        assert_eq!(layout.find(5 + 128 + 20), None);
        assert_eq!(layout.find(4), None);
    }

    #[test]
    fn a_rest_too_short_for_a_group_belongs_to_none() {
        let layout = layout(0, 64 + GROUP_BLOCKS_MIN - 1, 64);
        assert_eq!(layout.groups(), 1);
        assert_eq!(layout.find(64), None);
    }

    #[test]
    fn the_capacity_is_that_of_all_groups() {
        for end in 0..400 {
            for group_blocks in [16, 17, 64] {
                let layout = layout(7, end, group_blocks);
                let groups = 0..layout.groups();
                let sum: u64 = groups
                    .map(|group| layout.group(group).length - SLOT_BLOCKS)
                    .sum();
                assert_eq!(layout.capacity(), sum, "{layout:?}");
            }
        }
    }

    #[test]
    fn shapes_that_make_no_volume_are_refused() {
        for bad in [
            layout(0, 1 << 20, 0),
            layout(0, 1 << 20, GROUP_BLOCKS_MAX + 1),
            layout(9, 9, 64),
            layout(u64::MAX, 9, 64),
            layout(0, u64::MAX, 64),
            layout(0, GROUP_BLOCKS_MIN - 1, 64),
            layout(0, (GROUPS_MAX + 1) * 16, 16),
        ] {
            assert!(matches!(bad.check(), Err(Error::Layout { .. })), "{bad:?}");
        }
        assert!(layout(3, 1 << 40, GROUP_BLOCKS_MAX).check().is_err());
        assert_eq!(layout(3, 1 << 36, GROUP_BLOCKS_MAX).check(), Ok(()));
    }

    #[test]
    fn extents_that_no_group_holds_are_refused() {
        let layout = layout(1 << 32, (1 << 32) + 200, 64);
        let at = |start: u64, length| layout.locate(Extent::new((1 << 32) + start, length));
        assert_eq!(at(2, 62), Ok((0, 2, 62)));
        assert_eq!(at(64 + 63, 1), Ok((1, 63, 1)));
        for (start, length) in [(2, 63), (1, 1), (64, 4), (10, 0), (198, 60), (10, u64::MAX)] {
            assert!(at(start, length).is_err(), "{start}+{length}");
        }
        assert!(layout.locate(Extent::new(u64::MAX, u64::MAX)).is_err());
    }
}
