//! The lanes of a journal: each core's own, or, of a small ring, fewer that cores share.
//!
//! *Locking.* A thread has its lane for an append; whoever needs all at one moment closes all, or locks them in
//! their order.

use super::lane::Lane;
use crate::journal_primitive::{CoreLocks, Mutex, MutexGuard, PerCore};
use holdfast_core::store::Stamp;
use holdfast_sync::Padded;
use std::cell::Cell;

/// Blocks of a ring for each lane, at least: four frames.
const LANE_BLOCKS: u64 = 64;

#[derive(Debug)]
pub(super) enum Lanes {
    /// One of each core.
    Own(Box<CoreLocks<Lane>>),
    /// As many as the ring has room for.
    Few {
        lanes: Box<[Padded<Mutex<Lane>>]>,
        /// Each core's lane.
        mine: PerCore<usize>,
    },
}

impl Lanes {
    /// Those of a ring of so many blocks.
    pub(super) fn new(capacity: u64, last: Stamp) -> Self {
        let most = capacity / LANE_BLOCKS;
        // Numbers of lanes have 16 bits, and the last is a commit's.
        if CoreLocks::<Lane>::count() as u64 <= most.min(1 << 12) {
            let lane = |number| Lane::new(number as u16, last);
            return Self::Own(Box::new(CoreLocks::new(lane)));
        }
        let slots = PerCore::new(|| ()).iter().count() as u64;
        let lanes = most.clamp(1, slots) as u16;
        let next = Cell::new(0);
        Self::Few {
            lanes: (0..lanes)
                .map(|number| Padded(Mutex::new(Lane::new(number, last))))
                .collect(),
            mine: PerCore::new(|| next.replace(next.get() + 1) % usize::from(lanes)),
        }
    }

    /// Shows the calling thread's lane.
    #[inline]
    pub(super) fn with_own<R>(&self, show: impl FnOnce(&mut Lane) -> R) -> R {
        match self {
            Self::Own(lanes) => show(&mut lanes.lock()),
            Self::Few { lanes, mine } => show(&mut lanes[*mine.mine()].lock()),
        }
    }

    /// Shows all lanes at one moment.
    pub(super) fn with_all<R>(
        &self,
        show: impl FnOnce(&mut dyn Iterator<Item = &mut Lane>) -> R,
    ) -> R {
        match self {
            Self::Own(lanes) => show(&mut lanes.close().iter_mut()),
            Self::Few { lanes, .. } => {
                let mut lanes: Vec<MutexGuard<'_, Lane>> =
                    lanes.iter().map(|lane| lane.lock()).collect();
                show(&mut lanes.iter_mut().map(|lane| &mut **lane))
            }
        }
    }
}
