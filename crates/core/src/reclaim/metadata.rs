//! Reclaim of inodes, with their names, and of names of large directories: the directory stays, and
//! is partial.
//!
//! Files with holes or unwritten space are not evicted: small
//! files are inline in the store, which could not report such space again. A lookup in a directory
//! counts as a use.
//!
//! Inodes that an observer (the kernel of a mount) references by number are evicted like others:
//! their references are counted elsewhere meanwhile (see `evictions.rs`).

use crate::reclaim::shrinkers::{Metadata, Names};
use holdfast_cache::reclaim::{Count, Load, Request, Scan, Shrinker, Shrunk};
use holdfast_sync::epoch;

use crate::core::Core;
use crate::inode::Set;
use crate::inodes::InodeWalk;
use crate::inodes::evict::evict_inodes;
use crate::namespace::load::{forget_large_directories, names_in_memory};
use crate::reclaim::sizes::{INODE_BYTES, NAME_BYTES};
use crate::reclaim::state::passed;
use crate::reclaim::usage::{balance_sides, metadata_bytes, metadata_max, name_bytes};

/// The most inodes and names between two checks.
const STEP_MAX: u64 = 4096;
/// A step is this part of the limit.
const STEP_PART: u64 = 256;
/// Inodes that are scanned between two checks.
const BATCH: u64 = 1024;

/// The part of all inodes that must be on probation, or else the hand scans the main set.
const PROBATION_PART: u64 = 10;
/// The rounds of one reclaim over each set, including the rest of a round. In the main set one
/// round clears reference bits, and the next finds inodes that were not referenced since.
const ROUNDS: [u32; 2] = [2, 3];

/// If names take less than this part of the metadata limit, reclaim of names is skipped.
const NAMES_PART: u64 = 4;

impl Shrinker for Metadata {
    type Owner = Core;

    fn name(&self) -> &'static str {
        "metadata"
    }

    fn batch(&self) -> u64 {
        BATCH
    }

    /// A lazy access time is written to the store first.
    fn needs_store(&self) -> bool {
        true
    }

    fn load(&self, core: &Core) -> Load {
        metadata_load(core)
    }

    fn count(&self, core: &Core) -> Count {
        // After a failure of the store, unwritten changes are only in memory.
        match core.failure.is_latched() {
            true => Count::Empty,
            false => Count::Objects(core.index.len()),
        }
    }

    fn scan(&self, core: &Core, request: Request) -> Scan {
        hop!();
        let mut clock_hand = self.clock_hand.lock();
        if request.first {
            clock_hand.left = ROUNDS;
        }
        let Some(set) = set_to_give(core, clock_hand.left) else {
            return Scan::Stop;
        };
        let of = set as usize;
        let range = (clock_hand.at[of], u64::MAX);
        let (next, dropped) = evict_inodes(core, range, &mut { request.objects }, Some(set));
        clock_hand.left[of] -= u32::from(next.is_none());
        clock_hand.at[of] = next.unwrap_or(0);
        Scan::Freed(dropped.inodes)
    }

    fn was_of_use(&self, before: &Load, after: &Load) -> bool {
        after.held <= after.stop || before.held.saturating_sub(after.held) > before.held / 64
    }

    fn finish(&self) {
        epoch::flush();
    }
}

impl Shrinker for Names {
    type Owner = Core;

    fn name(&self) -> &'static str {
        "names"
    }

    /// A freed name has to be read from the store under an inode's lock.
    fn needs_store(&self) -> bool {
        true
    }

    fn load(&self, core: &Core) -> Load {
        metadata_load(core)
    }

    fn count(&self, core: &Core) -> Count {
        match names_in_memory(core) {
            Some(names) if name_bytes(core) > self.load(core).stop / NAMES_PART => {
                // Inodes go first.
                Count::Objects(if core.reclaim.frees_inodes() {
                    0
                } else {
                    names
                })
            }
            _ => Count::Empty,
        }
    }

    fn scan(&self, core: &Core, request: Request) -> Scan {
        let mut walk = self.walk.lock();
        if request.first {
            *walk = InodeWalk::new();
        }
        if walk.is_done() {
            return Scan::Stop;
        }
        Scan::Freed(forget_large_directories(core, &mut walk, request.objects))
    }
}

/// The value that [`shrink_inodes_since`] needs from before inodes
/// or names are added.
#[inline]
pub(crate) fn added_so_far(core: &Core) -> i64 {
    core.names.own().wrapping_add(core.index.own_len())
}

/// Evicts unused inodes, if this thread has added inodes or names since
/// [`added_so_far`] and there are too many. The caller holds no lock.
#[inline]
pub(crate) fn shrink_inodes_since(core: &Core, before: i64) {
    // Without shrinkers nothing can be evicted.
    if core.reclaim.shrinkers.get().is_none() {
        return;
    }
    let step = (core.reclaim.limit() / (STEP_PART * NAME_BYTES)).min(STEP_MAX);
    let came = passed(before, added_so_far(core), step);
    if came > 0 {
        shrink_inodes(core, came);
    }
}

/// Evicts unused inodes, after this thread has added `came` inodes and names.
#[cold]
fn shrink_inodes(core: &Core, came: u64) {
    hop!();
    let names = u64::try_from(core.names.sum()).unwrap_or(0);
    core.reclaim.epochs.pass(came, core.index.len() + names);
    core.reclaim.memory.look();
    let Some(shrinkers) = core.reclaim.shrinkers.get() else {
        return;
    };
    balance_sides(core);
    match shrinkers.metadata.shrink(core) {
        Shrunk::Enough | Shrunk::Left => return,
        Shrunk::Reached => {}
        // Elsewhere there is little to free, and all inodes would be scanned.
        Shrunk::Short => _ = shrinkers.names.shrink(core),
    }
    shrinkers.kernel.shrink(core);
}

/// The memory of inodes and names, and its limits.
fn metadata_load(core: &Core) -> Load {
    let limit = metadata_max(core);
    // More than is added until the next check.
    let slack = 2 * STEP_MAX * (INODE_BYTES + NAME_BYTES);
    Load {
        held: metadata_bytes(core),
        wake: limit,
        stop: limit - (limit / 16).min(slack),
        wait: limit.saturating_add(limit / 32),
    }
}

/// The set to scan, of those with rounds left: probation, unless it is small.
fn set_to_give(core: &Core, left: [u32; 2]) -> Option<Set> {
    let there = core.index.len();
    let main = u64::try_from(core.reclaim.main.sum()).unwrap_or(0);
    let is_short = there.saturating_sub(main) <= there / PROBATION_PART;
    let order = match is_short {
        true => [Set::Main, Set::Probation],
        false => [Set::Probation, Set::Main],
    };
    order.into_iter().find(|set| left[*set as usize] > 0)
}
