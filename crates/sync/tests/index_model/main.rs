//! The index under every interleaving of a few threads, and every order in which their memory
//! accesses may be seen.
//!
//! The modules of the index are compiled here once more, with loom's atomics and locks in place of
//! the real ones (`primitive`), and with epochs (`epoch`) that free at the first moment at which the
//! real ones might. The scenarios keep to two or three threads and few steps each: loom runs all
//! orders with up to `PAIR` or `CROWD` involuntary switches. `LOOM_LOG=trace` with the name of one test
//! tells the order that failed; the last execution printed is the one.
#![expect(unsafe_code, reason = "values that loom watches")]

/// As it is: no scenario has objects enough for it to start threads.
#[path = "../../src/crew.rs"]
pub mod crew;
/// As it is.
#[path = "../../src/idle_policy.rs"]
pub mod idle_policy;
#[path = "../../src/index/mod.rs"]
pub mod index;
/// As it is.
#[path = "../../src/padded.rs"]
pub mod padded;
/// As it is.
#[path = "../../src/prefetch.rs"]
pub mod prefetch;

mod counter;
pub mod epoch;
mod per_core;
mod primitive;
mod thread_slot;

mod evicted_uses;
mod evictions;
mod shared;
mod trees;
mod users;
mod waits;

use index::{EvictedUses, Freeing, Held, Index, Prepared, Ref};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Switches from a thread that could have gone on, in scenarios of two threads. Most errors need two.
const PAIR: usize = 3;
/// The same for three threads.
const CROWD: usize = 2;

/// A value that loom watches: an access that nothing orders before its end is an error.
struct Probe {
    key: UnsafeCell<u64>,
    // Written by users who know that they are the only ones who write, read by whoever ends it.
    note: UnsafeCell<u64>,
    left: StdArc<AtomicU64>,
}

// SAFETY: whether accesses are ordered is loom's to judge.
unsafe impl Sync for Probe {}

impl Probe {
    fn check(&self, key: u64) {
        // SAFETY: whoever holds the value only reads it; loom says whether that is true.
        self.key.with(|own| assert_eq!(unsafe { *own }, key));
    }

    fn write(&self, note: u64) {
        // SAFETY: nobody else writes, nor reads before the end; loom says whether that is true.
        self.note.with_mut(|own| unsafe { *own = note });
    }

    fn note(&self) -> u64 {
        // SAFETY: after the end nobody writes; loom says whether that is true.
        self.note.with(|own| unsafe { *own })
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: the value's end is exclusive; loom says whether that is true.
        self.key.with_mut(|own| unsafe { *own = u64::MAX });
        self.left.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An index, and the count of objects that exist.
struct World {
    index: Index<Probe>,
    evicted_uses: EvictedUses,
    left: StdArc<AtomicU64>,
}

impl World {
    fn probe(&self, key: u64) -> Probe {
        self.left.fetch_add(1, Ordering::Relaxed);
        Probe {
            key: UnsafeCell::new(key),
            note: UnsafeCell::new(0),
            left: StdArc::clone(&self.left),
        }
    }

    fn publish(&self, key: u64) -> Option<Ref<Probe>> {
        self.index.publish(key, self.probe(key)).ok()
    }

    /// Puts in all of these together; returns those that were refused.
    fn publish_all(&self, keys: &[u64]) -> Vec<u64> {
        let mut refused = Vec::new();
        let objects = keys
            .iter()
            .map(|&key| (key, Prepared::new(self.probe(key))));
        self.index.publish_all(objects, |key, held| match held {
            Some(held) => held.check(key),
            None => refused.push(key),
        });
        refused
    }

    /// A look that does not wait.
    fn with<R>(&self, key: u64, look: impl FnOnce(&Held<Probe>) -> R) -> Option<R> {
        let guard = epoch::pin();
        self.index.peek(key, &guard).map(look)
    }

    fn begin_evict(&self, key: u64) -> Option<Freeing<Probe>> {
        self.with(key, |held| self.index.begin_evict(held))?
    }

    /// Gives a use back, and buries the object if that was its end; was it?
    fn put(&self, held: Ref<Probe>) -> bool {
        let end = held.release();
        end.map(|freeing| {
            freeing.check(freeing.key());
            self.index.free(freeing);
        })
        .is_some()
    }

    /// All keys that a scan meets.
    fn keys(&self) -> Vec<u64> {
        let guard = epoch::pin();
        let mut keys = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.index.scan(from, 64, &guard, |held| {
                held.check(held.key());
                keys.push(held.key());
                true
            });
        }
        keys
    }
}

/// Runs `scenario` in every order. At its end the population is what the counters say, and every
/// object outside the index is gone.
fn model(preemptions: usize, scenario: impl Fn(&Arc<World>) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // `LOOM_MAX_PREEMPTIONS` looks harder, or (under a sanitizer) less hard.
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(move || {
        let world = Arc::new(World {
            index: Index::new(),
            evicted_uses: EvictedUses::new(),
            left: StdArc::default(),
        });
        scenario(&world);
        let left = StdArc::clone(&world.left);
        assert_eq!(left.load(Ordering::Relaxed), world.index.len(), "I6");
        assert_eq!(world.keys().len() as u64, world.index.len(), "I6");
        drop(world);
        assert_eq!(left.load(Ordering::Relaxed), 0, "leaked");
    });
}

/// Runs `other` in a thread of its own.
fn spawn<R: 'static>(
    world: &Arc<World>,
    other: impl FnOnce(&World) -> R + 'static,
) -> loom::thread::JoinHandle<R> {
    let world = Arc::clone(world);
    loom::thread::spawn(move || other(&world))
}
