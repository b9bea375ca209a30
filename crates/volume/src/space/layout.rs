use super::{Error, Extent};
use crate::block::BLOCK;

/// Bytes of a bitmap's block before its bits.
pub(super) const HEADER_SIZE: usize = 64;

/// Blocks of a group's bitmap: its two slots.
pub const SLOT_BLOCKS: u64 = 2;

/// The most groups with adjacent bitmaps: those of 8 GiB, in 512 KiB.
pub const BUNDLE_MAX: u64 = 64;

/// Most blocks of a group: as many as a bitmap of one block has bits (126 MiB).
pub const GROUP_BLOCKS_MAX: u64 = ((BLOCK - HEADER_SIZE) * 8) as u64;

/// The fewest blocks of a useful group, including its bitmap.
pub const GROUP_BLOCKS_MIN: u64 = 16;

/// The most groups of a volume (516 TiB of the largest ones): bounds the memory they take.
pub const GROUPS_MAX: u64 = 1 << 22;

/// Block numbers have 48 bits.
const BLOCKS_MAX: u64 = 1 << 48;

/// The place of the groups: from `start` on, one behind the other, the last one maybe shorter.
///
/// The bitmaps of a *flex group* (ext4's term) lie together, at the head of its first group, so a
/// file larger than a group can lie in a row. Room is reserved for the bitmaps of a whole flex
/// group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The volume's UUID: distinguishes its bitmaps from an earlier volume's.
    pub volume: [u8; 16],
    /// The first block of the first group.
    pub start: u64,
    /// The number behind the last block of the volume.
    pub end: u64,
    /// Blocks of each group, [`GROUP_BLOCKS_MIN`] to [`GROUP_BLOCKS_MAX`].
    pub group_blocks: u64,
    /// Groups of each flex group, 1 to [`BUNDLE_MAX`].
    pub bundle: u64,
}

/// A part of an extent that lies in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) group: u64,
    /// Its first block, in the group.
    pub(super) from: u32,
    /// The block behind its last one.
    pub(super) to: u32,
}

impl Layout {
    /// Validates a layout from disk.
    ///
    /// # Errors
    /// [`Error::Layout`] if no volume has this layout.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |reason| Err(Error::Layout { reason });
        if !(GROUP_BLOCKS_MIN..=GROUP_BLOCKS_MAX).contains(&self.group_blocks) {
            return refuse("groups of this size");
        }
        if !(1..=BUNDLE_MAX).contains(&self.bundle)
            || self.least(self.reserved(0)) > self.group_blocks
        {
            return refuse("bundles of so many groups");
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

    /// The number of groups. A remainder too short for a group is unused.
    #[must_use]
    pub fn groups(&self) -> u64 {
        let blocks = self.end.saturating_sub(self.start);
        let (whole, rest) = (blocks / self.group_blocks, blocks % self.group_blocks);
        whole + u64::from(rest >= self.least(self.reserved(whole)))
    }

    /// The fewest blocks of a group with so many blocks of bitmaps.
    fn least(&self, reserved: u64) -> u64 {
        GROUP_BLOCKS_MIN.max(GROUP_BLOCKS_MIN - SLOT_BLOCKS + reserved)
    }

    /// Blocks at the head of a group that hold bitmaps, its own and others'.
    #[must_use]
    pub fn reserved(&self, group: u64) -> u64 {
        match group % self.bundle {
            0 => self.bundle * SLOT_BLOCKS,
            _ => 0,
        }
    }

    /// Allocatable blocks of any group, at least.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.group_blocks - self.reserved(0)
    }

    /// Allocatable blocks of all groups.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let blocks = self.end.saturating_sub(self.start);
        let groups = self.groups();
        let all = blocks.min(groups * self.group_blocks);
        all.saturating_sub(groups.div_ceil(self.bundle) * self.reserved(0))
    }

    /// The blocks of a group.
    #[must_use]
    pub fn group(&self, group: u64) -> Extent {
        let start = self.start + group * self.group_blocks;
        Extent::new(start, self.group_blocks.min(self.end.saturating_sub(start)))
    }

    /// The group and offset of this block; `None` outside all groups.
    #[must_use]
    pub fn find(&self, block: u64) -> Option<(u64, u32)> {
        let offset = block.checked_sub(self.start)?;
        let group = offset / self.group_blocks;
        let within = u32::try_from(offset % self.group_blocks).ok()?;
        (block < self.end && group < self.groups()).then_some((group, within))
    }

    /// The parts of this extent by group. No extent contains bitmaps.
    ///
    /// # Errors
    /// [`Error::Outside`].
    pub(super) fn parts(&self, extent: Extent) -> Result<Parts, Error> {
        if self.holds(extent) {
            Ok(Parts {
                layout: *self,
                rest: extent,
            })
        } else {
            Err(Error::Outside { extent })
        }
    }

    /// Can all blocks of this extent be allocated?
    #[must_use]
    pub fn holds(&self, extent: Extent) -> bool {
        // An end beyond 64 bits is the greatest number, which lies outside.
        let last = extent.end().wrapping_sub(1);
        let (Some((first, offset)), Some((last, _))) = (self.find(extent.start), self.find(last))
        else {
            return false;
        };
        // No flex group may begin behind the extent's first group, nor in its first block.
        extent.length > 0
            && u64::from(offset) >= self.reserved(first)
            && first / self.bundle == last / self.bundle
    }

    /// The block of one of a group's two slots.
    #[must_use]
    pub fn slot(&self, group: u64, slot: usize) -> u64 {
        let place = group % self.bundle;
        self.group(group - place).start + place * SLOT_BLOCKS + slot as u64 % SLOT_BLOCKS
    }
}

/// The parts of an extent, by group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    layout: Layout,
    rest: Extent,
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let (group, from) = self.layout.find(self.rest.start)?;
        let room = self.layout.group_blocks - u64::from(from);
        let (part, rest) = self.rest.split(room);
        self.rest = rest;
        // A group has far fewer than 2^32 blocks.
        let to = from + part.length as u32;
        (part.length > 0).then_some(Part { group, from, to })
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
            bundle: 1,
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
            for (group_blocks, bundle) in [(16, 1), (17, 1), (64, 1), (64, 4), (30, 8)] {
                let layout = Layout {
                    bundle,
                    ..layout(7, end, group_blocks)
                };
                let groups = 0..layout.groups();
                let sum: u64 = groups
                    .map(|group| layout.group(group).length - layout.reserved(group))
                    .sum();
                assert_eq!(layout.capacity(), sum, "{layout:?}");
            }
        }
    }

    #[test]
    fn bitmaps_of_a_bundle_lie_together_and_in_nothing_else() {
        let layout = Layout {
            bundle: 4,
            ..layout(9, 9 + 6 * 40 + 22, 40)
        };
        assert_eq!(layout.check(), Ok(()));
        assert_eq!(layout.groups(), 7);
        let slots: Vec<u64> = (0..layout.groups())
            .flat_map(|group| [layout.slot(group, 0), layout.slot(group, 1)])
            .collect();
        let (first, second) = (9..9 + 8, 9 + 160..9 + 160 + 6);
        assert_eq!(slots, first.chain(second).collect::<Vec<_>>());
        for start in 0..300 {
            for length in 0..120 {
                let extent = Extent::new(start, length);
                let parts = |block: u64| {
                    let (group, at) = layout.find(block)?;
                    (u64::from(at) >= layout.reserved(group)).then_some((group, at))
                };
                let naive: Option<Vec<_>> = (start..start + length).map(parts).collect();
                let naive = naive.filter(|blocks| !blocks.is_empty());
                let told = layout.parts(extent).ok().map(|parts| {
                    let blocks = parts.map(|it| (it.from..it.to).map(move |at| (it.group, at)));
                    blocks.flatten().collect::<Vec<_>>()
                });
                assert_eq!(told, naive, "{extent}");
            }
        }
    }

    #[test]
    fn a_rest_too_short_for_the_bitmaps_of_a_bundle_belongs_to_no_group() {
        for (rest, groups) in [(21, 2), (22, 3)] {
            let layout = Layout {
                bundle: 2,
                ..layout(0, 2 * 64 + rest - 4, 64)
            };
            assert_eq!(layout.groups(), groups, "{rest}");
        }
        for bundle in [0, 26, BUNDLE_MAX + 1] {
            let layout = Layout {
                bundle,
                ..layout(0, 640, 64)
            };
            assert!(layout.check().is_err(), "{bundle}");
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
        let at = |start: u64, length| layout.holds(Extent::new((1 << 32) + start, length));
        assert!(at(2, 62) && at(64 + 63, 1));
        for (start, length) in [(2, 63), (1, 1), (64, 4), (10, 0), (198, 60), (10, u64::MAX)] {
            assert!(!at(start, length), "{start}+{length}");
        }
        assert!(!layout.holds(Extent::new(u64::MAX, u64::MAX)));
        assert!(!layout.holds(Extent::new(0, 0)));
    }
}
