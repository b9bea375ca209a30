use crate::primitive::{AtomicU64, Ordering};

/// The blocks of a ring that nobody has asked for yet.
///
/// Lanes ask for a whole frame before they fill it and give back what they did not use, so that
/// an appended batch can always be written.
#[derive(Debug)]
pub(super) struct Room {
    free: AtomicU64,
    /// What appends leave to commits.
    reserve: u64,
}

impl Room {
    pub(super) fn new(free: u64, reserve: u64) -> Self {
        Self {
            free: AtomicU64::new(free),
            reserve,
        }
    }

    pub(super) fn free(&self) -> u64 {
        // Relaxed, here and below: the number comes with nothing else.
        self.free.load(Ordering::Relaxed)
    }

    pub(super) const fn reserve(&self) -> u64 {
        self.reserve
    }

    /// Takes blocks, but for the reserve.
    pub(super) fn take(&self, blocks: u64) -> bool {
        self.take_down_to(blocks, self.reserve)
    }

    /// Takes blocks, of the reserve too.
    pub(super) fn take_reserved(&self, blocks: u64) -> bool {
        self.take_down_to(blocks, 0)
    }

    /// Takes blocks, if there is as much left behind that: half of all that appends may use.
    pub(super) fn take_of_plenty(&self, blocks: u64, capacity: u64) -> bool {
        self.take_down_to(blocks, capacity - (capacity - self.reserve) / 2)
    }

    fn take_down_to(&self, blocks: u64, floor: u64) -> bool {
        let taken = |free: u64| free.checked_sub(blocks).filter(|left| *left >= floor);
        self.free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken)
            .is_ok()
    }

    pub(super) fn give(&self, blocks: u64) {
        self.free.fetch_add(blocks, Ordering::Relaxed);
    }
}
