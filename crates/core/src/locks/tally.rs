//! How many locks a file system holds, counted without a line that all threads write.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

const SHARDS: usize = 16;

/// Two cache lines, because processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(AtomicI64);

/// A counter in shards; threads are dealt to shards in turn. A shard alone may be negative.
#[derive(Debug, Default)]
pub(super) struct Tally {
    shards: [Shard; SHARDS],
}

fn shard_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static SHARD: Cell<Option<usize>> = const { Cell::new(None) });
    SHARD.with(|shard| {
        shard.get().unwrap_or_else(|| {
            // Relaxed: only the value's uniqueness matters, and not even that much.
            let index = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
            shard.set(Some(index));
            index
        })
    })
}

impl Tally {
    pub(super) fn add(&self, change: i64) {
        if change != 0 {
            // Relaxed: a statistic; it publishes nothing.
            self.shards[shard_of_this_thread()]
                .0
                .fetch_add(change, Ordering::Relaxed);
        }
    }

    /// The sum; while others count, a value between two true ones.
    pub(super) fn sum(&self) -> u64 {
        let sum: i64 = self
            .shards
            .iter()
            .map(|shard| shard.0.load(Ordering::Relaxed))
            .sum();
        u64::try_from(sum).unwrap_or(0)
    }
}
