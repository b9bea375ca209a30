//! Blocks that preallocations take from the free ones, and give back.

use super::super::search::Purpose;
use super::super::{Extent, Kind, Space};
use super::index::Piece;

/// Blocks allocated at once, for many small files.
const CHUNK: u64 = 512;

impl Space {
    /// Places a small file beside other small files of this core. `None` if room is short.
    pub(super) fn place_small(&self, length: u64, goal: Option<u64>) -> Option<Extent> {
        // Held during the allocation: another thread of this core waits for the result.
        let mut locality = self.localities.mine().lock();
        let near = goal.unwrap_or(0);
        let taken = locality.take(length, near).or_else(|| {
            let wanted = CHUNK.max(length);
            let extent = self.allocate_unreserved(goal, length, wanted, length)?;
            self.preallocated.add(extent.length as i64);
            locality.put(extent);
            locality.take(length, near)
        });
        let trimmed = locality.trim();
        drop(locality);
        for extent in trimmed {
            self.free_preallocated(extent);
        }
        self.preallocated.add(-(taken?.length as i64));
        taken
    }

    /// Frees preallocated blocks.
    pub(super) fn free_preallocated(&self, extent: Extent) {
        self.give_back(extent).expect("blocks that were set aside");
        self.preallocated.add(-(extent.length as i64));
    }

    /// Places `least` to `wanted` blocks, if `room` unreserved blocks are free.
    pub(super) fn allocate_unreserved(
        &self,
        goal: Option<u64>,
        least: u64,
        wanted: u64,
        room: u64,
    ) -> Option<Extent> {
        let given = self.counter.take(room, wanted, Kind::Data)?;
        let found = self.search(goal, least, given, Purpose::Unrecorded);
        let length = found.map_or(0, |extent| extent.length);
        self.counter.put_back(given - length);
        found
    }

    /// Removes the list entry of a piece that is in no index any more.
    pub(super) fn unlist(&self, piece: &Piece) {
        // Its group is that of its first block, which a piece never loses.
        let (group, range) = self.range(piece.extent).expect("blocks of a group");
        let mut state = self.table().lock(group);
        state.preallocated.remove(&(range.from, piece.id));
    }

    /// Gives up a piece that was removed from its index.
    pub(super) fn discard_piece(&self, piece: &Piece) -> u64 {
        self.unlist(piece);
        for extent in piece.unused() {
            self.free_preallocated(extent);
        }
        piece.free()
    }
}
