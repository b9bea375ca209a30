//! The limit and the state of reclaim.

use super::shrinkers::Shrinkers;
use super::sizes::{INODE_BYTES, NAME_BYTES};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use holdfast_cache::memory::Memory;
use holdfast_sync::ShardedCounter;
use once_cell::race::OnceBox;

use super::balance::Balance;
use super::ghosts::Ghosts;
use super::sizes::Sizes;
use crate::inode::{Epochs, Inode, Part, Scanned, Set};

/// The limit and the state of reclaim.
#[derive(Debug)]
pub(crate) struct Reclaim {
    /// Shared with the store, and with other file systems.
    pub(crate) memory: Arc<Memory>,
    /// Bytes of it that inodes, names and content may use.
    pub(super) limit: AtomicU64,
    /// The epochs of references.
    pub(crate) epochs: Epochs,
    /// Inodes in the main set.
    pub(crate) main: ShardedCounter,
    /// How often one moved to that set because it was referenced again.
    pub(crate) promoted: ShardedCounter,
    /// Inodes that were recently evicted from probation.
    pub(crate) ghosts: Ghosts,
    /// The same for content: small files as a whole, others page by page. Counted in pages.
    pub(crate) content_ghosts: Ghosts,
    /// The sizes of names.
    pub(crate) name_sizes: Sizes,
    /// The sizes of extensions: extended attributes, targets, parts of directories.
    pub(crate) extension_sizes: Sizes,
    /// The shares of metadata and content.
    pub(super) balance: Balance,
    /// The shrinkers; none if nothing can be evicted.
    pub(super) shrinkers: OnceBox<Shrinkers>,
}

impl Reclaim {
    /// Within this memory.
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self {
            limit: AtomicU64::new(memory.limit()),
            memory,
            epochs: Epochs::default(),
            main: ShardedCounter::new(),
            promoted: ShardedCounter::new(),
            ghosts: Ghosts::default(),
            content_ghosts: Ghosts::default(),
            name_sizes: Sizes::default(),
            extension_sizes: Sizes::default(),
            balance: Balance::default(),
            shrinkers: OnceBox::new(),
        }
    }

    /// Is a thread evicting inodes?
    pub(crate) fn frees_inodes(&self) -> bool {
        let shrinkers = self.shrinkers.get();
        shrinkers.is_some_and(|shrinkers| shrinkers.metadata.is_busy())
    }

    /// Was an inode of this set not used since the last scan?
    pub(crate) fn is_idle(&self, inode: &Inode, set: Set) -> bool {
        let scanned = inode.scan(Part::Inode, set, &self.epochs);
        if scanned == Scanned::Promoted {
            self.main.add(1);
            self.promoted.add(1);
        }
        scanned == Scanned::Idle
    }

    /// Can the store load all of an inode again? An inode on probation then leaves a ghost.
    pub(crate) fn can_go(&self, inode: &Inode, set: Set) -> bool {
        let goes = !inode.has_space_of_its_own();
        if goes && set == Set::Probation {
            self.ghosts.note(inode.key(), 1, self.inodes_max());
        }
        goes
    }

    /// Bytes of everything that can be evicted.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// The number of inodes that fit with their names, and as much content.
    fn inodes_max(&self) -> u64 {
        self.limit() / 2 / (INODE_BYTES + NAME_BYTES)
    }
}

/// The increase of a counter between multiples of a power of two, the first that is no less than
/// `step`.
pub(super) fn passed(before: i64, now: i64, step: u64) -> u64 {
    let shift = step.max(1).next_power_of_two().trailing_zeros();
    let steps = (now >> shift).saturating_sub(before >> shift);
    u64::try_from(steps).unwrap_or(0) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_passed_upwards_alone() {
        assert_eq!(passed(4095, 4096, 4096), 4096);
        assert_eq!(passed(0, 10_000, 4096), 8192, "as many as came");
        assert_eq!(passed(-1, 0, 1), 1);
        assert_eq!(passed(5, 8, 0), 3, "a limit of nothing has no steps");
        for (before, now) in [(4096, 4097), (4096, 4095), (0, -1), (i64::MAX, i64::MIN)] {
            assert_eq!(passed(before, now, 4096), 0, "{before} to {now}");
        }
    }
}
