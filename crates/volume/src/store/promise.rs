//! Blocks promised to writers who have not made their pages known yet.

use std::ptr;
use std::sync::Arc;

use holdfast_sync::PerCore;
use parking_lot::{Mutex, MutexGuard};

use crate::space::{self, Reservation, Space};

/// Blocks that are kept at hand.
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

    /// The calling thread has made known what it was promised blocks for. In the same passage of the gate: a
    /// commit finds its pages waiting, or its promise.
    pub(super) fn made_known(&self) {
        self.mine().settle(me());
    }

    /// Takes what pages that wait were promised, and what nobody needs, for a commit, which gives the rest of it
    /// to [`committed`](Self::committed). Nobody passes the gate meanwhile.
    pub(super) fn gather(&self) -> Promise {
        let mut all = Promise::new(self.mine().left.split(0));
        for promise in self.0.iter() {
            let mut promise = promise.lock();
            let spare = promise.left.blocks().saturating_sub(promise.under_way());
            all.left.merge(promise.left.split(spare));
        }
        all
    }

    /// Some of the pages that wait have places now: the rest of what was [gathered](Self::gather) is for the others.
    pub(super) fn placed_some(&self, rest: Promise) {
        self.mine().left.merge(rest.left);
    }

    /// A commit has placed all pages that waited: what is left over and nobody will need goes back to the
    /// space.
    pub(super) fn committed(&self, mut all: Promise) {
        let kept = all.left.split(IDLE);
        self.mine().left.merge(kept);
    }
}

thread_local! {
    static ME: u8 = const { 0 };
}

/// What tells living threads apart.
fn me() -> usize {
    ME.with(|me| ptr::from_ref(me).addr())
}

/// What writers were promised and no page has got.
///
/// A writer takes his promise before he changes anything, and any number of commits may come before he is done:
/// they leave him what he was promised. The rest nobody needed, because it fitted into places that were there.
#[derive(Debug)]
pub(super) struct Promise {
    left: Reservation,
    /// Threads that were promised so many blocks and have not made known yet what for: mostly one. Who failed
    /// in between is among them until he makes the next change.
    under_way: Vec<(usize, u64)>,
}

impl Promise {
    /// Out of this, at first.
    pub(super) fn new(left: Reservation) -> Self {
        Self {
            left,
            under_way: Vec::new(),
        }
    }

    /// What blocks are placed out of.
    pub(super) fn left(&mut self) -> &mut Reservation {
        &mut self.left
    }

    /// Promises more to the calling thread.
    ///
    /// # Errors
    /// If there is no room; the promise stays as it was.
    pub(super) fn grow(&mut self, blocks: u64) -> Result<(), space::Error> {
        self.left.grow(blocks)?;
        let me = me();
        match self.under_way.iter_mut().find(|(who, _)| *who == me) {
            Some((_, promised)) => *promised += blocks,
            None => self.under_way.push((me, blocks)),
        }
        Ok(())
    }

    /// What the calling thread was promised and will not need.
    pub(super) fn split(&mut self, blocks: u64) -> Reservation {
        let me = me();
        if let Some((_, promised)) = self.under_way.iter_mut().find(|(who, _)| *who == me) {
            *promised = promised.saturating_sub(blocks);
        }
        self.left.split(blocks)
    }

    /// Nothing that this thread was promised is under way.
    fn settle(&mut self, thread: usize) {
        self.under_way.retain(|(who, _)| *who != thread);
    }

    fn under_way(&self) -> u64 {
        self.under_way.iter().map(|(_, promised)| promised).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{Layout, Space};

    #[test]
    fn what_a_writer_was_promised_outlives_commits_until_he_made_it_known() {
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
        let commit = || promises.committed(promises.gather());
        let left = || {
            let left = promises.0.iter();
            left.map(|promise| promise.lock().left.blocks())
                .sum::<u64>()
        };
        promises.mine().grow(300).unwrap();
        promises.mine().grow(200).unwrap();
        let other = || {
            promises.mine().grow(50).unwrap();
            commit();
            drop(promises.mine().split(30));
            commit();
            commit();
            assert_eq!(left(), 520, "two writers are under way");
            promises.made_known();
            // Its pages wait, and get what it was promised.
            drop(promises.gather().left.split(20));
        };
        std::thread::scope(|scope| scope.spawn(other).join().unwrap());
        commit();
        commit();
        assert_eq!(left(), 500);
        promises.made_known();
        commit();
        assert_eq!(left(), IDLE);
        assert_eq!(space.report().available(), free - IDLE);
    }
}
