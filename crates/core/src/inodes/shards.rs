//! Work on all inodes, divided among the processors.

use holdfast_sync::{processors, together};
use parking_lot::Mutex;

use super::Dropped;
use crate::core::Core;

/// Inodes that justify a thread: some milliseconds of work.
const WORTH_A_THREAD: u64 = 1 << 15;
/// Shards per thread, as they take different times.
const SHARDS: usize = 8;

/// Calls `work` for ranges of numbers that together cover all: on this thread, or on several if
/// there are many inodes.
pub(crate) fn in_shards(core: &Core, work: impl Fn((u64, u64)) + Sync) {
    let worth = usize::try_from(core.index.len() / WORTH_A_THREAD).unwrap_or(usize::MAX);
    let threads = if worth > 1 {
        worth.min(processors())
    } else {
        1
    };
    if threads == 1 {
        return work((0, u64::MAX));
    }
    let shards = Mutex::new(core.index.ranges(threads * SHARDS).into_iter());
    let next = || shards.lock().next();
    together(threads, || {
        while let Some(shard) = next() {
            work(shard);
        }
    });
}

/// The sum of what `let_go` drops in all shards.
pub(crate) fn drop_in_shards(
    core: &Core,
    let_go: impl Fn((u64, u64)) -> Dropped + Sync,
) -> Dropped {
    let sum = Mutex::new(Dropped::default());
    in_shards(core, |range| {
        let dropped = let_go(range);
        let mut sum = sum.lock();
        sum.inodes += dropped.inodes;
        sum.names += dropped.names;
    });
    sum.into_inner()
}
