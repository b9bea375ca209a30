//! The blocks in use, and space for new nodes in unreferenced blocks.

use std::sync::Arc;

use holdfast_device::BlockDevice;

use crate::block::BLOCK;
use crate::check::BlockSet;
use crate::error::Error;
use crate::space::{Extent, GROUP_BLOCKS_MAX};
use crate::tree::{self, NodeSpace, Pointer};

/// The bitmap of a group: bitmap blocks are used, and bits behind the group are set.
pub(super) fn bitmap(used: &BlockSet, group: u64) -> Vec<u64> {
    let extent = used.layout().group(group);
    let mut words = vec![u64::MAX; (GROUP_BLOCKS_MAX / 64) as usize];
    for index in used.layout().reserved(group)..extent.length {
        if !used.has(extent.start + index)
            && let Some(word) = words.get_mut((index / 64) as usize)
        {
            *word &= !(1 << (index % 64));
        }
    }
    words
}

/// Space for new nodes and copies.
pub(super) struct Room {
    device: Arc<dyn BlockDevice>,
    pub(super) used: BlockSet,
    next: u64,
}

impl Room {
    pub(super) fn new(device: Arc<dyn BlockDevice>, used: BlockSet) -> Self {
        let next = used.layout().start;
        Self { device, used, next }
    }

    /// Takes adjacent blocks.
    pub(super) fn take(&mut self, blocks: u64) -> Option<u64> {
        let (start, end) = (self.used.layout().start, self.used.layout().end);
        for (from, to) in [(self.next, end), (start, self.next)] {
            let mut at = from;
            while at.saturating_add(blocks) <= to.saturating_add(blocks).min(end) {
                let extent = Extent::new(at, blocks);
                if self.used.layout().holds(extent) && !self.used.overlaps(extent) {
                    self.used.insert(extent);
                    self.next = extent.end();
                    return Some(at);
                }
                at += 1;
            }
        }
        None
    }

    /// Copies blocks to newly taken ones.
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

    // The old trees remain until the superblock leads to the new ones.
    fn free(&mut self, _node: Pointer) {}

    // No bitmap has the blocks before the end.
    fn give_back(&mut self, _block: u64, _blocks: u16) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Layout;
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
        let used = BlockSet::new(layout);
        used.insert(Extent::new(14, 3));
        used.insert(Extent::new(28, 4));
        assert!(!used.has(28), "not across groups");
        let mut room = Room::new(Arc::new(MemoryDevice::new(1 << 20)), used);
        let taken: Vec<_> = std::iter::from_fn(|| room.take(4)).collect();
        assert_eq!(taken, [17, 21, 25, 32, 36, 40, 44]);
        let singles: Vec<_> = std::iter::from_fn(|| room.take(1)).collect();
        assert_eq!(singles, [48, 49, 12, 13, 29]);
        let words = bitmap(&room.used, 0);
        assert!(words.iter().all(|word| *word == u64::MAX));
    }
}
