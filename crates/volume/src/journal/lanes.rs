//! The lanes of a journal: each core's own, or, of a small ring, fewer that cores share.
//!
//! *Locking.* A thread locks its lane for an append. A cut locks all of them in their order.

use super::lane::Lane;
use crate::primitive::{Mutex, MutexGuard, PerCore};
use holdfast_sync::Padded;
use std::cell::Cell;

/// Blocks of a ring for each lane, at least: four frames.
const LANE_BLOCKS: u64 = 64;

#[derive(Debug)]
pub(super) struct Lanes {
    /// As many as there are cores, or as the ring has room for.
    lanes: Box<[Padded<Mutex<Lane>>]>,
    /// Each core's lane.
    mine: PerCore<usize>,
}

impl Lanes {
    /// Those of a ring of so many blocks.
    pub(super) fn new(capacity: u64) -> Self {
        let slots = PerCore::new(|| ()).iter().count() as u64;
        // Numbers of lanes have 16 bits, and the last is a commit's: there are never as many slots.
        let lanes = (capacity / LANE_BLOCKS).clamp(1, slots) as u16;
        let next = Cell::new(0);
        Self {
            lanes: (0..lanes)
                .map(|number| Padded(Mutex::new(Lane::new(number))))
                .collect(),
            mine: PerCore::new(|| next.replace(next.get() + 1) % usize::from(lanes)),
        }
    }

    /// Shows the calling thread's lane.
    #[inline]
    pub(super) fn with_own<R>(&self, show: impl FnOnce(&mut Lane) -> R) -> R {
        show(&mut self.lanes[*self.mine.mine()].lock())
    }

    /// Shows all lanes at one moment.
    pub(super) fn with_all<R>(
        &self,
        show: impl FnOnce(&mut dyn Iterator<Item = &mut Lane>) -> R,
    ) -> R {
        let mut lanes: Vec<MutexGuard<'_, Lane>> =
            self.lanes.iter().map(|lane| lane.lock()).collect();
        show(&mut lanes.iter_mut().map(|lane| &mut **lane))
    }
}
