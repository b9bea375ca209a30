//! All inodes at once, divided among the processors.

use holdfast_sync::{processors, together};
use parking_lot::Mutex;

use super::{Dropped, InodeWalk};
use crate::file_system::Core;
use crate::types::Result;

/// Inodes that are worth a thread: some milliseconds of work.
const WORTH_A_THREAD: u64 = 1 << 15;
/// Shards for each thread: some have more to do than others.
const SHARDS: usize = 8;

impl Core {
    /// Does `work` for every shard of the numbers, which together are all of them: on this thread, or
    /// on several if there are many inodes.
    pub(crate) fn in_shards(&self, work: impl Fn((u64, u64)) + Sync) {
        let worth = usize::try_from(self.index.len() / WORTH_A_THREAD).unwrap_or(usize::MAX);
        let threads = if worth > 1 {
            worth.min(processors())
        } else {
            1
        };
        if threads == 1 {
            return work((0, u64::MAX));
        }
        let shards = Mutex::new(self.index.ranges(threads * SHARDS).into_iter());
        let next = || shards.lock().next();
        together(threads, || {
            while let Some(shard) = next() {
                work(shard);
            }
        });
    }

    /// What `let_go` drops of all shards.
    pub(crate) fn drop_in_shards(&self, let_go: impl Fn((u64, u64)) -> Dropped + Sync) -> Dropped {
        let sum = Mutex::new(Dropped::default());
        self.in_shards(|range| {
            let dropped = let_go(range);
            let mut sum = sum.lock();
            sum.inodes += dropped.inodes;
            sum.names += dropped.names;
        });
        sum.into_inner()
    }

    /// Hands over the access times that `lazytime` kept back, before all goes.
    ///
    /// # Errors
    /// What the store answers, the first time.
    pub(crate) fn write_all_times(&self) -> Result<()> {
        if !self.lazytime.any() {
            return Ok(());
        }
        let outcome = Mutex::new(Ok(()));
        self.in_shards(|(from, end)| {
            if let Err(error) = self.write_times_of(InodeWalk::range(from, end)) {
                let mut first = outcome.lock();
                *first = first.and(Err(error));
            }
        });
        outcome.into_inner()
    }
}
