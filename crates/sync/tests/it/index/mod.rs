//! What an index of counted objects promises, with one thread and with many.

mod life;
mod model;
mod remains;
mod stress;
mod walks;

use holdfast_sync::{Index, epoch};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A value that counts how many of its kind are left, and is recognisable after its drop.
#[derive(Debug)]
struct Tracked {
    key: u64,
    intact: AtomicU64,
    left: Arc<AtomicU64>,
}

const INTACT: u64 = 0x5afe_5afe_5afe_5afe;

impl Tracked {
    fn new(key: u64, left: &Arc<AtomicU64>) -> Self {
        left.fetch_add(1, Ordering::Relaxed);
        Self {
            key,
            intact: AtomicU64::new(INTACT),
            left: Arc::clone(left),
        }
    }

    fn check(&self, key: u64) {
        assert_eq!(self.key, key, "another object");
        assert_eq!(self.intact.load(Ordering::Relaxed), INTACT, "freed");
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        assert_eq!(
            self.intact.swap(0, Ordering::Relaxed),
            INTACT,
            "freed twice"
        );
        self.left.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An index, and the count of objects that exist, in it or elsewhere.
struct Fixture {
    index: Index<Tracked>,
    left: Arc<AtomicU64>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            index: Index::new(),
            left: Arc::default(),
        }
    }

    /// With live objects at these keys, without uses.
    fn with(keys: impl IntoIterator<Item = u64>) -> Self {
        let fixture = Self::new();
        for key in keys {
            let held = fixture.publish(key).expect("a free key");
            assert!(held.release().is_none());
        }
        fixture
    }

    fn publish(&self, key: u64) -> Option<holdfast_sync::Ref<Tracked>> {
        self.index
            .publish(key, Tracked::new(key, &self.left))
            .inspect_err(|value| value.check(key))
            .ok()
    }

    /// Evicts and frees an object without uses.
    fn evict(&self, key: u64) -> bool {
        let guard = epoch::pin();
        let freeing = self
            .index
            .peek(key, &guard)
            .and_then(|held| self.index.begin_evict(held));
        drop(guard);
        freeing.map(|freeing| self.index.free(freeing)).is_some()
    }

    /// Waits until only `expected` objects exist: other threads may still be dropping some.
    fn settle(&self, expected: u64) {
        settle(&self.left, expected);
    }
}

fn settle(left: &AtomicU64, expected: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        epoch::synchronize();
        let left = left.load(Ordering::Relaxed);
        if left == expected {
            return;
        }
        assert!(left > expected, "{left} left of {expected}");
        assert!(Instant::now() < deadline, "{left} left, not {expected}");
        thread::yield_now();
    }
}
