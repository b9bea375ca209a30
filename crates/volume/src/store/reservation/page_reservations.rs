//! Reservations for dirty pages that have no blocks yet.

use std::cell::Cell;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::space::{self, Reservation, Space};

/// The reservations of all dirty pages.
///
/// *Invariant.* They cover all dirty pages. A batch adds its reservation in the same passage of the
/// barrier in which it dirties pages: a commit, which closes the barrier, finds both or neither.
#[derive(Debug)]
pub(in crate::store) struct PageReservations(Mutex<Reservation>);

impl PageReservations {
    pub(in crate::store) fn new(space: &Arc<Space>) -> Result<Self, space::Error> {
        Ok(Self(Mutex::new(space.reserve(0)?)))
    }

    /// Adds a reservation for pages that are now dirty.
    pub(in crate::store) fn add(&self, blocks: u64) {
        if blocks > 0 {
            self.0.lock().take_in(blocks);
        }
    }

    /// Allocates out of `unused`, a number of reserved blocks, and leaves the rest in it. It
    /// borrows the reservation of the dirty pages for that: a new one would touch a counter of the
    /// space.
    pub(in crate::store) fn place_from<T>(
        &self,
        unused: &Cell<u64>,
        place: impl FnOnce(&mut Reservation) -> T,
    ) -> T {
        let mut mine = self.0.lock();
        let others = mine.exchange(unused.take());
        let placed = place(&mut mine);
        unused.set(mine.exchange(others));
        placed
    }

    /// Takes all of it, for pages that get blocks now. The barrier is closed.
    pub(in crate::store) fn take(&self) -> Reservation {
        let mut all = self.0.lock();
        let blocks = all.blocks();
        all.split(blocks)
    }

    /// Takes up to `blocks`, for a batch that overwrites dirty pages.
    pub(in crate::store) fn draw(&self, blocks: u64) -> Reservation {
        self.0.lock().split(blocks)
    }

    pub(in crate::store) fn blocks(&self) -> u64 {
        self.0.lock().blocks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{Layout, Space};

    #[test]
    fn what_pages_were_promised_is_there_for_a_commit_and_what_they_did_not_need_goes_back() {
        let layout = Layout {
            volume: [7; 16],
            start: 0,
            end: 4096,
            group_blocks: 2048,
            bundle: 1,
        };
        let space = Space::format(layout).unwrap();
        let free = space.report().available();
        let page_reservations = PageReservations::new(&space).unwrap();
        page_reservations.add(space.reserve(300).unwrap().into_blocks());
        std::thread::scope(|scope| {
            scope.spawn(|| page_reservations.add(space.reserve(50).unwrap().into_blocks()));
        });
        assert_eq!(page_reservations.blocks(), 350);
        assert_eq!(space.report().available(), free - 350);
        let mut all = page_reservations.take();
        assert_eq!((all.blocks(), page_reservations.blocks()), (350, 0));
        page_reservations.add(all.split(100).into_blocks());
        drop(all);
        assert_eq!(space.report().available(), free - 100);
        assert_eq!(page_reservations.draw(30).blocks(), 30);
        assert_eq!(page_reservations.draw(100).blocks(), 70);
        assert_eq!(page_reservations.take().blocks(), 0);
        assert_eq!(space.report().available(), free);
    }
}
