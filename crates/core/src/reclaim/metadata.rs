//! Inodes that go, with their names. Files stay that have holes, or space without data: a store
//! may keep few bytes without telling, and what is behind the end nobody asks for. A directory in which names are looked for is used.
//!
//! Those that an observer holds by their numbers (a kernel, of a mount) go as others do: their uses are counted elsewhere while they are
//! away (see `evictions.rs`).

use holdfast_cache::reclaim::{Count, Load, Request, Scan, Shrinker, Shrunk};
use holdfast_sync::epoch;
use parking_lot::Mutex;

use super::{INODE_BYTES, NAME_BYTES, passed};
use crate::file_system::Core;
use crate::inode::Set;

/// Inodes and names between two looks, at most.
const STEP_MAX: u64 = 4096;
/// A step takes this part of the limit.
const STEP_PART: u64 = 256;
/// Inodes that are looked at before it is asked again whether it is enough.
const BATCH: u64 = 1024;

/// Of all inodes one in so many is on probation, at least, before a hand goes over the main set.
const PROBATION_PART: u64 = 10;
/// Rounds over each set that a reclaim may make, the rest of one counted: in the main set one finds what was used, and another whether it
/// was since.
const ROUNDS: [u32; 2] = [2, 3];

/// Frees inodes.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    hand: Mutex<Hand>,
}

/// Where the hands stand.
#[derive(Debug, Default)]
struct Hand {
    /// The numbers to go on from: on probation, and in the main set.
    at: [u64; 2],
    /// Rounds that are left of each.
    left: [u32; 2],
}

impl Shrinker for Metadata {
    type Owner = Core;

    fn name(&self) -> &'static str {
        "metadata"
    }

    fn batch(&self) -> u64 {
        BATCH
    }

    /// An access time that was kept back goes there first.
    fn needs_store(&self) -> bool {
        true
    }

    fn load(&self, core: &Core) -> Load {
        core.metadata_load()
    }

    fn count(&self, core: &Core) -> Count {
        // What did not reach the store after it failed is here alone.
        match core.failure.is_latched() {
            true => Count::Empty,
            false => Count::Objects(core.index.len()),
        }
    }

    fn scan(&self, core: &Core, request: Request) -> Scan {
        let mut hand = self.hand.lock();
        if request.first {
            hand.left = ROUNDS;
        }
        let Some(set) = core.set_to_give(hand.left) else {
            return Scan::Stop;
        };
        let of = set as usize;
        let (next, gone) = core.evict_some(hand.at[of], request.objects, set);
        hand.left[of] -= u32::from(next.is_none());
        hand.at[of] = next.unwrap_or(0);
        Scan::Freed(gone)
    }

    fn was_of_use(&self, before: &Load, after: &Load) -> bool {
        after.held <= after.stop || before.held.saturating_sub(after.held) > before.held / 64
    }

    fn finish(&self) {
        epoch::flush();
    }
}

impl Core {
    /// What [`shrink_inodes_since`](Self::shrink_inodes_since) needs from before inodes or names are
    /// added.
    #[inline]
    pub(crate) fn added_so_far(&self) -> i64 {
        match self.pinned {
            true => 0,
            false => self.names.own().wrapping_add(self.index.own_len()),
        }
    }

    /// Lets inodes go that nobody uses, if this thread has added some, or names, since
    /// [`added_so_far`](Self::added_so_far) and there are too many. With nothing locked.
    #[inline]
    pub(crate) fn shrink_inodes_since(&self, before: i64) {
        if self.pinned {
            return;
        }
        let step = (self.reclaim.limit() / (STEP_PART * NAME_BYTES)).min(STEP_MAX);
        let came = passed(before, self.added_so_far(), step);
        if came > 0 {
            let names = u64::try_from(self.names.sum()).unwrap_or(0);
            self.reclaim.epochs.pass(came, self.index.len() + names);
            self.reclaim.memory.look();
            self.shrink_inodes();
        }
    }

    #[cold]
    fn shrink_inodes(&self) {
        let Some(shrinkers) = self.reclaim.shrinkers.get() else {
            return;
        };
        self.weigh_sides();
        match shrinkers.metadata.shrink(self) {
            Shrunk::Enough | Shrunk::Left => return,
            Shrunk::Reached => {}
            // Elsewhere there is little to find, and all inodes to look at.
            Shrunk::Short => _ = shrinkers.names.shrink(self),
        }
        shrinkers.kernel.shrink(self);
    }

    /// What inodes and names take, and how much that is to be.
    pub(crate) fn metadata_load(&self) -> Load {
        let limit = self.metadata_max();
        // More than is added until the next look.
        let slack = 2 * STEP_MAX * (INODE_BYTES + NAME_BYTES);
        Load {
            held: self.metadata_bytes(),
            wake: limit,
            stop: limit - (limit / 16).min(slack),
            wait: limit.saturating_add(limit / 32),
        }
    }

    /// The set that a hand is to go over, of those that have rounds left: what is on probation, unless there is little of it.
    fn set_to_give(&self, left: [u32; 2]) -> Option<Set> {
        let there = self.index.len();
        let main = u64::try_from(self.reclaim.main.sum()).unwrap_or(0);
        let is_short = there.saturating_sub(main) <= there / PROBATION_PART;
        let order = match is_short {
            true => [Set::Main, Set::Probation],
            false => [Set::Probation, Set::Main],
        };
        order.into_iter().find(|set| left[*set as usize] > 0)
    }
}
