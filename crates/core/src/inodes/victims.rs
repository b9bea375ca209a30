//! The inodes that an eviction takes.

use holdfast_sync::{Freeing, epoch};

use crate::file_system::Core;
use crate::inode::{Inode, Object, Part, Scanned, Set};

/// Victims that are taken at once.
pub(super) const BATCH: usize = 64;

/// The unreferenced inodes that are evicted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victims {
    /// All except the root.
    All,
    /// Those of a set that were not used since the last scan, and lose no information.
    Idle(Set),
}

impl Victims {
    /// Marks a batch of victims in this range as freeing; returns where to continue. `most` counts
    /// down the inodes that may be scanned.
    pub(super) fn take(
        self,
        core: &Core,
        range: (u64, u64),
        most: &mut u64,
        batch: &mut Vec<Freeing<Object>>,
    ) -> Option<u64> {
        // The unchecked iterator: a reference would prevent the eviction.
        let guard = epoch::pin();
        core.index.scan(range.0, range.1, &guard, |inode| {
            batch.extend(self.take_one(core, inode));
            *most -= 1;
            *most > 0 && batch.len() < BATCH
        })
    }

    fn take_one(self, core: &Core, inode: &Inode) -> Option<Freeing<Object>> {
        if !core.is_evictable(inode) || !self.is_idle(core, inode) {
            return None;
        }
        let freeing = core.begin_evict(inode)?;
        // Rechecked in the freeing state, in which no file lock can be taken. Not for an unlinked
        // inode: a concurrent last FORGET relies on this thread to free it.
        let goes =
            freeing.nlink() == 0 || core.is_evictable(&freeing) && self.can_go(core, &freeing);
        goes.then_some(freeing)
    }

    /// Was the inode not used since the last scan?
    fn is_idle(self, core: &Core, inode: &Inode) -> bool {
        let Self::Idle(set) = self else {
            return true;
        };
        let scanned = inode.scan(Part::Inode, set, &core.reclaim.epochs);
        if scanned == Scanned::Promoted {
            core.reclaim.main.add(1);
            core.reclaim.promoted.add(1);
        }
        scanned == Scanned::Idle
    }

    /// Can the store load all of the inode again? An inode on probation leaves a ghost.
    fn can_go(self, core: &Core, inode: &Inode) -> bool {
        if self == Self::All {
            return true;
        }
        let goes = !inode.has_space_of_its_own();
        if goes && self == Self::Idle(Set::Probation) {
            let most = core.reclaim.inodes_max();
            core.reclaim.ghosts.note(inode.key(), 1, most);
        }
        goes
    }
}
