use crate::primitive::{AtomicU64, Ordering};

/// The free blocks of the ring.
///
/// A log buffer takes a whole frame before it fills it and returns the unused blocks, so an
/// appended batch can always be written.
#[derive(Debug)]
pub(super) struct Room {
    free: AtomicU64,
    /// Blocks that appends leave to commits.
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
        // Relaxed, here and below: the count orders nothing else.
        self.free.load(Ordering::Relaxed)
    }

    pub(super) const fn reserve(&self) -> u64 {
        self.reserve
    }

    /// Takes blocks, except from the reserve.
    pub(super) fn take(&self, blocks: u64) -> bool {
        self.take_down_to(blocks, self.reserve)
    }

    /// Takes blocks, also from the reserve.
    pub(super) fn take_reserved(&self, blocks: u64) -> bool {
        self.take_down_to(blocks, 0)
    }

    /// Takes blocks if half of those that appends may use remain free.
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
