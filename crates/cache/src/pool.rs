//! A fixed amount of space that many threads reserve from.
//!
//! *Invariants.* The common pool, the credits of all slots and the used pages add up to the limit.
//! While a thread moves pages between them they are in none of the sums, and never in two, so the
//! limit cannot be exceeded.
//!
//! Each thread keeps a small credit, because a counter that every write to every file changes would
//! be a cache line shared by all writers. So a thread may find the pool empty while others have
//! credit. It then collects all credits and tries again. So `ENOSPC` means that there is no room,
//! or that other threads were taking it at that moment.

use crate::account::Space;
use holdfast_sync::{PerCore, ShardedCounter};
use holdfast_types::{Errno, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// A [`Space`] with a fixed limit, or with none.
#[derive(Debug)]
pub struct SpacePool {
    /// Counts the used pages, if there is no limit.
    unlimited_used: ShardedCounter,
    limited: Option<Limited>,
}

#[derive(Debug)]
struct Limited {
    limit: u64,
    free: AtomicU64,
    /// Pages that a thread reserves beyond what it needs.
    batch: u64,
    cached: PerCore<AtomicU64>,
}

/// Pages that a thread reserves beyond what it needs: 1 MiB.
const BATCH: u64 = 256;

impl SpacePool {
    /// Room for `limit` pages, or without a limit.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        Self::with_batch(limit, BATCH)
    }

    /// As [`new`](Self::new), for any unit: a thread reserves `batch` beyond what it needs.
    #[must_use]
    pub fn with_batch(limit: Option<u64>, batch: u64) -> Self {
        let limited = limit.map(|limit| Limited {
            limit,
            free: AtomicU64::new(limit),
            batch,
            cached: PerCore::default(),
        });
        Self {
            unlimited_used: ShardedCounter::new(),
            limited,
        }
    }

    /// The limit in pages.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limited.as_ref().map(|limited| limited.limit)
    }

    /// Pages in use or reserved. Exact if no other thread reserves or releases meanwhile.
    #[must_use]
    pub fn used(&self) -> u64 {
        match &self.limited {
            None => self.unlimited_used.sum().max(0).cast_unsigned(),
            Some(limited) => limited.limit.saturating_sub(limited.free()),
        }
    }

    /// Pages still free; `u64::MAX` without a limit.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.limited.as_ref().map_or(u64::MAX, Limited::free)
    }
}

impl Limited {
    fn free(&self) -> u64 {
        let each = self
            .cached
            .iter()
            .map(|pages| pages.load(Ordering::Relaxed));
        each.fold(self.free.load(Ordering::Relaxed), u64::saturating_add)
    }

    fn reserve(&self, pages: u64) -> Result<()> {
        // A request that can never succeed must not collect the credits of others.
        if pages > self.limit {
            return Err(Errno::ENOSPC);
        }
        if take(self.cached.mine(), pages) {
            return Ok(());
        }
        let more = pages.saturating_add(self.batch);
        if more <= self.limit / 8 && take(&self.free, more) {
            self.cached.mine().fetch_add(self.batch, Ordering::Relaxed);
            return Ok(());
        }
        if take(&self.free, pages) {
            return Ok(());
        }
        for pages in self.cached.iter() {
            let taken = pages.swap(0, Ordering::Relaxed);
            if taken > 0 {
                self.free.fetch_add(taken, Ordering::Relaxed);
            }
        }
        if take(&self.free, pages) {
            Ok(())
        } else {
            Err(Errno::ENOSPC)
        }
    }

    fn release(&self, pages: u64) {
        let own = self.cached.mine();
        if pages <= self.batch && own.load(Ordering::Relaxed) <= self.batch {
            own.fetch_add(pages, Ordering::Relaxed);
        } else {
            self.free.fetch_add(pages, Ordering::Relaxed);
        }
    }
}

/// Takes `pages` out of `from` if there are as many.
fn take(from: &AtomicU64, pages: u64) -> bool {
    // Relaxed throughout: the numbers order no other memory.
    from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |there| {
        there.checked_sub(pages)
    })
    .is_ok()
}

impl Space for SpacePool {
    fn reserve(&self, pages: u64) -> Result<()> {
        match &self.limited {
            None => {
                self.unlimited_used.add(pages.cast_signed());
                Ok(())
            }
            Some(limited) => limited.reserve(pages),
        }
    }

    fn release(&self, pages: u64) {
        match &self.limited {
            None => self.unlimited_used.add(pages.cast_signed().wrapping_neg()),
            Some(limited) => limited.release(pages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_last_page_can_be_had_from_any_thread() {
        let pool = SpacePool::new(Some(10_000));
        thread::scope(|scope| {
            scope.spawn(|| {
                pool.reserve(1).unwrap();
                pool.release(1);
            });
        });
        assert_eq!(pool.free(), 10_000);
        assert_eq!(pool.reserve(10_001), Err(Errno::ENOSPC));
        pool.reserve(10_000).unwrap();
        assert_eq!((pool.free(), pool.used()), (0, 10_000));
        assert_eq!(pool.reserve(1), Err(Errno::ENOSPC));
        pool.release(10_000);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn the_limit_holds_under_threads() {
        let pool = SpacePool::new(Some(3000));
        let held = AtomicU64::new(0);
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (pool, held) = (&pool, &held);
                scope.spawn(move || {
                    let release = |pages| {
                        held.fetch_sub(pages, Ordering::SeqCst);
                        pool.release(pages);
                    };
                    let mut mine = Vec::new();
                    for round in 0..20_000 {
                        let pages = (round * 7 + thread) % 300;
                        if pool.reserve(pages).is_ok() {
                            let before = held.fetch_add(pages, Ordering::SeqCst);
                            assert!(before + pages <= 3000);
                            mine.push(pages);
                        }
                        if round % 3 == 0 || mine.len() > 30 {
                            mine.pop().into_iter().for_each(release);
                        }
                    }
                    mine.into_iter().for_each(release);
                });
            }
        });
        assert_eq!((held.into_inner(), pool.used()), (0, 0));
        // Whether threads reach the limit together is chance; alone, it is certain.
        assert_eq!(pool.reserve(3001), Err(Errno::ENOSPC));
    }

    #[test]
    fn without_a_limit_only_the_sum_is_kept() {
        let pool = SpacePool::new(None);
        pool.reserve(1 << 51).unwrap();
        assert_eq!(
            (pool.used(), pool.free(), pool.limit()),
            (1 << 51, u64::MAX, None)
        );
        pool.release(1 << 51);
        assert_eq!(pool.used(), 0);
    }
}
