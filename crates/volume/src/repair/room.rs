//! Which blocks are in use, and where new nodes go: only what nobody has is written to.

use std::sync::Arc;

use holdfast_device::BlockDevice;

use crate::space::{Extent, Layout};
use crate::tree::{self, NodeSpace, Pointer};
use crate::{BLOCK, Error};

/// A bit for each block of the groups.
#[derive(Clone, Debug)]
pub(super) struct Used {
    layout: Layout,
    words: Vec<u64>,
}

impl Used {
    pub(super) fn new(layout: Layout) -> Self {
        let words = layout.end.saturating_sub(layout.start).div_ceil(64);
        let words = vec![0; usize::try_from(words).unwrap_or(0)];
        Self { layout, words }
    }

    /// Can anybody have this?
    pub(super) fn is_possible(&self, extent: Extent) -> bool {
        self.layout.holds(extent)
    }

    /// Is one of these blocks in use? False for what lies outside.
    pub(super) fn overlaps(&self, extent: Extent) -> bool {
        self.is_possible(extent) && (extent.start..extent.end()).any(|block| self.has(block))
    }

    /// Is this block in use?
    pub(super) fn has(&self, block: u64) -> bool {
        let at = block.saturating_sub(self.layout.start);
        let word = self.words.get((at / 64) as usize);
        word.is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// These are in use; nothing happens to what lies outside.
    pub(super) fn mark(&mut self, extent: Extent) {
        if !self.is_possible(extent) {
            return;
        }
        for block in extent.start..extent.end() {
            let at = block - self.layout.start;
            if let Some(word) = self.words.get_mut((at / 64) as usize) {
                *word |= 1 << (at % 64);
            }
        }
    }

    /// This one is not in use.
    #[cfg(test)]
    pub(super) fn clear(&mut self, block: u64) {
        let at = block - self.layout.start;
        self.words[(at / 64) as usize] &= !(1 << (at % 64));
    }

    /// The bitmap of a group: bitmaps are used, and what lies behind it.
    pub(super) fn bitmap(&self, group: u64) -> Vec<u64> {
        let extent = self.layout.group(group);
        let mut words = vec![u64::MAX; (crate::space::GROUP_BLOCKS_MAX / 64) as usize];
        for index in self.layout.reserved(group)..extent.length {
            if !self.has(extent.start + index)
                && let Some(word) = words.get_mut((index / 64) as usize)
            {
                *word &= !(1 << (index % 64));
            }
        }
        words
    }
}

/// Room for new nodes and copies.
pub(super) struct Room {
    device: Arc<dyn BlockDevice>,
    pub(super) used: Used,
    next: u64,
}

impl Room {
    pub(super) fn new(device: Arc<dyn BlockDevice>, used: Used) -> Self {
        let next = used.layout.start;
        Self { device, used, next }
    }

    /// Takes blocks in a row.
    pub(super) fn take(&mut self, blocks: u64) -> Option<u64> {
        let (start, end) = (self.used.layout.start, self.used.layout.end);
        for (from, to) in [(self.next, end), (start, self.next)] {
            let mut at = from;
            while at.saturating_add(blocks) <= to.saturating_add(blocks).min(end) {
                let extent = Extent::new(at, blocks);
                if self.used.is_possible(extent) && !self.used.overlaps(extent) {
                    self.used.mark(extent);
                    self.next = extent.end();
                    return Some(at);
                }
                at += 1;
            }
        }
        None
    }

    /// Copies blocks to a place of their own.
    pub(super) fn copy(&mut self, from: Extent) -> Result<u64, Error> {
        let full = Error::Geometry("there is no room for a repair: nothing was changed".to_owned());
        let to = self.take(from.length).ok_or(full)?;
        let mut bytes = vec![0; BLOCK];
        for index in 0..from.length {
            self.device
                .read((from.start + index) * BLOCK as u64, &mut bytes)?;
            self.device.write((to + index) * BLOCK as u64, &bytes)?;
        }
        Ok(to)
    }
}

impl NodeSpace for Room {
    fn allocate(&mut self, blocks: u16, _goal: u64) -> tree::Result<u64> {
        self.take(u64::from(blocks)).ok_or(tree::Error::NoSpace)
    }

    fn write(&mut self, node: Pointer, bytes: &[u8]) -> tree::Result<()> {
        let written = self.device.write(node.block * BLOCK as u64, bytes);
        written.map_err(|error| tree::Error::Device {
            block: node.block,
            errno: error.errno(),
        })
    }

    // The old trees stay as they are until the superblock leads to the new ones.
    fn free(&mut self, _node: Pointer) {}

    // What was taken is in no bitmap before the end.
    fn give_back(&mut self, _block: u64, _blocks: u16) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_device::MemoryDevice;

    #[test]
    fn only_free_blocks_within_groups_are_taken() {
        let layout = Layout {
            volume: [7; 16],
            start: 10,
            end: 50,
            group_blocks: 20,
            bundle: 1,
        };
        let mut used = Used::new(layout);
        used.mark(Extent::new(14, 3));
        used.mark(Extent::new(28, 4));
        assert!(!used.has(28), "not across groups");
        let mut room = Room::new(Arc::new(MemoryDevice::new(1 << 20)), used);
        let taken: Vec<_> = std::iter::from_fn(|| room.take(4)).collect();
        assert_eq!(taken, [17, 21, 25, 32, 36, 40, 44]);
        let singles: Vec<_> = std::iter::from_fn(|| room.take(1)).collect();
        assert_eq!(singles, [48, 49, 12, 13, 29]);
        let words = room.used.bitmap(0);
        assert!(words.iter().all(|word| *word == u64::MAX));
    }
}
