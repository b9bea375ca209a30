//! Blocks promised for pages that wait and have no place yet.

use std::cell::Cell;
use std::sync::Arc;

use holdfast_sync::PerCore;
use parking_lot::Mutex;

use crate::space::{self, Reservation, Space};

/// What the pages that wait were promised: each core's on a line of its own.
///
/// *Invariant.* It is never less than what the pages that wait may take. A batch brings its promise in the same
/// passage of the gate in which its pages begin to wait: a commit, which closes the gate, finds both or neither.
#[derive(Debug)]
pub(in crate::store) struct Promises(PerCore<Mutex<Reservation>>);

impl Promises {
    /// Nothing, at first.
    ///
    /// # Errors
    /// Those of the space.
    pub(in crate::store) fn new(space: &Arc<Space>) -> Result<Self, space::Error> {
        let nothing = Mutex::new(space.reserve(0)?);
        Ok(Self(PerCore::new(|| Mutex::new(nothing.lock().split(0)))))
    }

    /// Pages begin to wait that were promised so many blocks.
    pub(in crate::store) fn add(&self, blocks: u64) {
        if blocks > 0 {
            self.0.mine().lock().take_in(blocks);
        }
    }

    /// Places blocks out of a promise that is a number, as out of a reservation of exactly that; what is left of it is the
    /// number then. The reservation of the core is lent for that: one of its own would count an owner of the space, which
    /// all cores share.
    pub(in crate::store) fn place_from<T>(
        &self,
        promise: &Cell<u64>,
        place: impl FnOnce(&mut Reservation) -> T,
    ) -> T {
        let mut mine = self.0.mine().lock();
        let others = mine.exchange(promise.take());
        let placed = place(&mut mine);
        promise.set(mine.exchange(others));
        placed
    }

    /// Takes all of it, for pages that get places now. The gate is closed.
    pub(in crate::store) fn take(&self) -> Reservation {
        let mut all = self.0.mine().lock().split(0);
        for promise in self.0.iter() {
            let mut promise = promise.lock();
            let blocks = promise.blocks();
            all.merge(promise.split(blocks));
        }
        all
    }

    /// Takes so much of it, or less, for a batch whose pages waited and do so no longer.
    pub(in crate::store) fn draw(&self, blocks: u64) -> Reservation {
        let mut drawn = self.0.mine().lock().split(blocks);
        for promise in self.0.iter() {
            let missing = blocks - drawn.blocks();
            if missing == 0 {
                break;
            }
            let more = promise.lock().split(missing);
            drawn.merge(more);
        }
        drawn
    }

    /// How much it is.
    pub(in crate::store) fn blocks(&self) -> u64 {
        let all = self.0.iter().map(|promise| promise.lock().blocks());
        all.sum()
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
        let promises = Promises::new(&space).unwrap();
        promises.add(space.reserve(300).unwrap().into_blocks());
        std::thread::scope(|scope| {
            scope.spawn(|| promises.add(space.reserve(50).unwrap().into_blocks()));
        });
        assert_eq!(promises.blocks(), 350);
        assert_eq!(space.report().available(), free - 350);
        let mut all = promises.take();
        assert_eq!((all.blocks(), promises.blocks()), (350, 0));
        promises.add(all.split(100).into_blocks());
        drop(all);
        assert_eq!(space.report().available(), free - 100);
        assert_eq!(promises.draw(30).blocks(), 30);
        assert_eq!(promises.draw(100).blocks(), 70);
        assert_eq!(promises.take().blocks(), 0);
        assert_eq!(space.report().available(), free);
    }
}
