//! The index under every interleaving of a few threads, and every order in which their memory
//! accesses may become visible.
//!
//! The modules of the index are compiled here once more, with loom's atomics and locks
//! (`primitive`). The epochs (`epoch`) free at the first moment at which the real ones might.
//! Scenarios keep to two or three threads and few steps each: loom runs all orders with up to
//! `PAIR` or `CROWD` preemptions. `LOOM_LOG=trace` with the name of one test prints each execution;
//! the last one printed is the one that failed.
#![expect(unsafe_code, reason = "values that loom watches")]

/// The original.
#[path = "../../src/idle_policy.rs"]
pub mod idle_policy;
#[path = "../../src/index/mod.rs"]
pub mod index;
/// The original.
#[path = "../../src/padded.rs"]
pub mod padded;
/// The original: no scenario has enough objects to start threads.
#[path = "../../src/parallel.rs"]
pub mod parallel;
/// The original.
#[path = "../../src/prefetch.rs"]
pub mod prefetch;

mod counter;
#[path = "../model/epoch.rs"]
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

use index::{EvictedUses, Freeing, Held, Index, Ref};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Preemptions in scenarios of two threads. Most errors need two.
const PAIR: usize = 3;
/// Preemptions in scenarios of three threads.
const CROWD: usize = 2;

/// A value that loom watches: an access that nothing orders before its drop is an error.
struct Probe {
    key: UnsafeCell<u64>,
    // Written by users that know that they are the only writers, read by the thread that ends it.
    note: UnsafeCell<u64>,
    left: StdArc<AtomicU64>,
}

// SAFETY: loom judges whether accesses are ordered.
unsafe impl Sync for Probe {}

impl Probe {
    fn check(&self, key: u64) {
        // SAFETY: users of the value only read it; loom checks that.
        self.key.with(|own| assert_eq!(unsafe { *own }, key));
    }

    fn write(&self, note: u64) {
        // SAFETY: no other thread writes, nor reads before the end; loom checks that.
        self.note.with_mut(|own| unsafe { *own = note });
    }

    fn note(&self) -> u64 {
        // SAFETY: no thread writes after the end; loom checks that.
        self.note.with(|own| unsafe { *own })
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: the drop is exclusive; loom checks that.
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

    /// A lookup that does not wait.
    fn with<R>(&self, key: u64, look: impl FnOnce(&Held<Probe>) -> R) -> Option<R> {
        let guard = epoch::pin();
        self.index.peek(key, &guard).map(look)
    }

    fn begin_evict(&self, key: u64) -> Option<Freeing<Probe>> {
        self.with(key, |held| self.index.begin_evict(held))?
    }

    /// Releases a use, and frees the object if that made it freeing; did it?
    fn put(&self, held: Ref<Probe>) -> bool {
        let end = held.release();
        end.map(|freeing| {
            freeing.check(freeing.key());
            self.index.free(freeing);
        })
        .is_some()
    }

    /// Frees an object, if a call made it freeing; did it?
    fn free(&self, end: Option<Freeing<Probe>>) -> bool {
        end.map(|freeing| self.index.free(freeing)).is_some()
    }

    /// Marks the object at key 1, and frees it if that made it freeing; did it?
    fn mark(&self) -> bool {
        self.free(self.with(1, Held::mark_freeing).flatten())
    }

    /// Evicts the object at key 1; did it?
    fn evict_unused(&self) -> bool {
        self.free(self.begin_evict(1))
    }

    /// Gives back raw uses of the object at key 1, and frees it if that made it freeing; did it?
    fn forget(&self, uses: u64) -> bool {
        self.free(self.with(1, |held| held.forget(uses)).flatten())
    }

    /// All keys that a scan visits.
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

/// Runs `scenario` in every order. At its end the counters give the number of objects in the index,
/// and every other object is dropped.
fn model(preemptions: usize, scenario: impl Fn(&Arc<World>) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // `LOOM_MAX_PREEMPTIONS` allows more of them, or (under a sanitizer) fewer.
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

/// Exactly one of several calls ended the object.
fn one_end<const N: usize>(ends: [bool; N]) {
    assert_eq!(ends.into_iter().filter(|end| *end).count(), 1, "R-I8");
}

/// Runs `other` in a thread of its own.
fn spawn<R: 'static>(
    world: &Arc<World>,
    other: impl FnOnce(&World) -> R + 'static,
) -> loom::thread::JoinHandle<R> {
    let world = Arc::clone(world);
    loom::thread::spawn(move || other(&world))
}
