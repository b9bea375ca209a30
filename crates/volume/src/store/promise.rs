//! Blocks promised to writers who have not made their pages known yet.

use std::sync::Arc;

use holdfast_sync::PerCore;
use parking_lot::{Mutex, MutexGuard};

use crate::space::{self, Reservation, Space};

/// Blocks that are kept for writers under way in any case.
const IDLE: u64 = 64;

/// What writers of all cores were promised: each core's on a line of its own.
#[derive(Debug)]
pub(super) struct Promises(PerCore<Mutex<Promise>>);

impl Promises {
    /// Nothing, at first.
    ///
    /// # Errors
    /// Those of the space.
    pub(super) fn new(space: &Arc<Space>) -> Result<Self, space::Error> {
        let nothing = Mutex::new(space.reserve(0)?);
        Ok(Self(PerCore::new(|| {
            Mutex::new(Promise::new(nothing.lock().split(0)))
        })))
    }

    /// What writers of this core were promised.
    pub(super) fn mine(&self) -> MutexGuard<'_, Promise> {
        self.0.mine().lock()
    }

    /// Takes what all of them were promised, for a commit, which gives it to
    /// [`committed`](Self::committed).
    pub(super) fn gather(&self) -> Promise {
        let mut all = Promise::new(self.mine().left.split(0));
        for promise in self.0.iter() {
            let mut promise = promise.lock();
            all.lately += std::mem::take(&mut promise.lately);
            all.left.merge(promise.left.split(u64::MAX));
        }
        all
    }

    /// A commit has placed all pages that waited: what is left over and nobody will need goes back to the
    /// space.
    pub(super) fn committed(&self, mut all: Promise) {
        let kept = all.left.split(all.lately.max(IDLE));
        self.mine().left.merge(kept);
    }
}

/// What writers were promised and no page has got.
///
/// A writer takes his promise before he changes anything, and a commit may come before he is done: so what was
/// promised since the last one stays. The rest nobody needed, because it fitted into places that were
/// there.
#[derive(Debug)]
pub(super) struct Promise {
    left: Reservation,
    /// Promised since the last commit.
    lately: u64,
}

impl Promise {
    /// Out of this, at first.
    pub(super) fn new(left: Reservation) -> Self {
        Self { left, lately: 0 }
    }

    /// What blocks are placed out of.
    pub(super) fn left(&mut self) -> &mut Reservation {
        &mut self.left
    }

    /// Promises more.
    ///
    /// # Errors
    /// If there is no room; the promise stays as it was.
    pub(super) fn grow(&mut self, blocks: u64) -> Result<(), space::Error> {
        self.left.grow(blocks)?;
        self.lately += blocks;
        Ok(())
    }

    /// What was promised and will not be needed.
    pub(super) fn split(&mut self, blocks: u64) -> Reservation {
        self.lately = self.lately.saturating_sub(blocks);
        self.left.split(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{Layout, Space};

    #[test]
    fn what_was_promised_since_the_last_commit_outlives_the_next() {
        let layout = Layout {
            volume: [7; 16],
            start: 0,
            end: 4096,
            group_blocks: 2048,
        };
        let space = Space::format(layout).unwrap();
        let free = space.report().available();
        let promises = Promises::new(&space).unwrap();
        let commit = || promises.committed(promises.gather());
        let left = || {
            let left = promises.0.iter();
            left.map(|promise| promise.lock().left.blocks())
                .sum::<u64>()
        };
        promises.mine().grow(500).unwrap();
        commit();
        assert_eq!(left(), 500, "its writer may be under way");
        promises.mine().grow(50).unwrap();
        // Another core's, if there are several slots.
        let other = || promises.mine().grow(50).unwrap();
        std::thread::scope(|scope| scope.spawn(other).join().unwrap());
        drop(promises.mine().split(30));
        commit();
        assert_eq!(left(), 70);
        commit();
        assert_eq!(left(), IDLE);
        assert_eq!(space.report().available(), free - IDLE);
    }
}
