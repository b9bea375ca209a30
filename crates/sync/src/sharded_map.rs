//! An index from numbers to values, split into shards with a lock each.
//!
//! *Invariants.* A key lives in exactly one shard, chosen from the key alone.
//!
//! *Locking.* One lock per shard, guarding that shard's table; no operation ever holds two. All
//! closures passed in run under a shard's lock and must not call back into the same map.
//!
//! The interface promises nothing that a lock-free index cannot keep: values come out as clones
//! or are seen under a short guard, conditions for removal are judged atomically with it, and a
//! walk is resumed from an opaque cursor.

use crate::padded::Padded;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::fmt;
use std::thread::available_parallelism;

type Table<V> = HashMap<u64, V, RandomState>;

/// An index from `u64` to `V` that many threads read and change.
///
/// Keys are expected to be dealt in sequence (inode numbers). The shard is the top bits of the
/// key times the golden ratio, which spreads consecutive keys, and keys at any common stride,
/// about evenly over the shards: creators that draw from one counter take different locks, and
/// creators that own aligned batches do not march through the shards in step, as they would
/// if the low bits chose.
pub struct ShardedMap<V> {
    // The length is a power of two; `shift` brings a mixed key down to an index.
    shards: Box<[Padded<RwLock<Table<V>>>]>,
    shift: u32,
}

/// Where a walk over a [`ShardedMap`] goes on; the default is the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    shard: usize,
    // The smallest key of that shard not yet returned.
    from: u64,
}

const SHARDS_MIN: usize = 64;
const SHARDS_MAX: usize = 4096;

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Tables smaller than this are not worth shrinking.
const SHRINK_FROM: usize = 256;

impl<V: Clone> ShardedMap<V> {
    /// An empty map, with enough shards for this machine's cores.
    #[must_use]
    pub fn new() -> Self {
        let cores = available_parallelism().map_or(1, |cores| cores.get());
        Self::with_shards(cores * 16)
    }

    /// An empty map with at least `shards` shards (and never fewer than 64).
    #[must_use]
    pub fn with_shards(shards: usize) -> Self {
        let count = shards.clamp(SHARDS_MIN, SHARDS_MAX).next_power_of_two();
        let hasher = RandomState::default();
        let empty = || Padded(RwLock::new(Table::with_hasher(hasher.clone())));
        Self {
            shards: (0..count).map(|_| empty()).collect(),
            shift: 64 - count.trailing_zeros(),
        }
    }

    fn shard(&self, key: u64) -> &RwLock<Table<V>> {
        &self.shards[(key.wrapping_mul(GOLDEN) >> self.shift) as usize].0
    }

    /// A clone of the value of `key`.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<V> {
        self.shard(key).read().get(&key).cloned()
    }

    /// What `look` makes of the value of `key`, looking at it under the shard's read lock.
    pub fn get_with<R>(&self, key: u64, look: impl FnOnce(&V) -> R) -> Option<R> {
        self.shard(key).read().get(&key).map(look)
    }

    /// Is there a value for `key`?
    #[must_use]
    pub fn contains(&self, key: u64) -> bool {
        self.shard(key).read().contains_key(&key)
    }

    /// Puts `value` at `key` and returns what was there before.
    pub fn insert(&self, key: u64, value: V) -> Option<V> {
        self.shard(key).write().insert(key, value)
    }

    /// The value of `key`, made by `make` if there is none yet.
    ///
    /// `make` runs at most once, under the shard's write lock, so that of several racing callers
    /// all get the value of one; it should be short and must not block.
    pub fn get_or_insert_with(&self, key: u64, make: impl FnOnce() -> V) -> V {
        let shard = self.shard(key);
        if let Some(found) = shard.read().get(&key) {
            return found.clone();
        }
        shard.write().entry(key).or_insert_with(make).clone()
    }

    /// Removes `key` and returns its value.
    pub fn remove(&self, key: u64) -> Option<V> {
        self.remove_if(key, |_| true)
    }

    /// Removes `key` if `condition` holds of its value, judged under the shard's write lock, so
    /// that nobody can get the value between the judgement and the removal.
    ///
    /// The removed value is returned, hence dropped outside the lock.
    pub fn remove_if(&self, key: u64, condition: impl FnOnce(&V) -> bool) -> Option<V> {
        let mut table = self.shard(key).write();
        if !condition(table.get(&key)?) {
            return None;
        }
        let removed = table.remove(&key);
        shrink(&mut table);
        removed
    }

    /// The number of values: the sum over the shards, taken one after another, hence exact only
    /// while nobody else changes the map.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().len()).sum()
    }

    /// Is there no value at all (see [`len`](Self::len) for how exact that is)?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.read().is_empty())
    }

    /// Shows every shard's keys and values to `look`, each under its shard's read lock.
    ///
    /// A key that is there throughout is seen exactly once; keys that come or go meanwhile are
    /// seen once or not at all.
    pub fn for_each_shard(&self, mut look: impl FnMut(&mut dyn Iterator<Item = (u64, &V)>)) {
        for shard in &self.shards {
            let table = shard.read();
            look(&mut table.iter().map(|(&key, value)| (key, value)));
        }
    }

    /// Up to `max` further keys of a walk, and moves `cursor` behind them; empty at the end.
    ///
    /// Over all calls with one cursor, a key that is there throughout is returned exactly once,
    /// whatever else changes between the calls; a key that comes or goes is returned at most
    /// once per stay. No lock is held between calls. The order is none that means anything.
    ///
    /// A call costs as much as the shards it looks at hold: ask for some thousands at a time.
    pub fn keys_from(&self, cursor: &mut Cursor, max: usize) -> Vec<u64> {
        let mut keys = Vec::new();
        while keys.len() < max {
            let Some(shard) = self.shards.get(cursor.shard) else {
                break;
            };
            let begin = keys.len();
            keys.extend(
                shard
                    .read()
                    .keys()
                    .copied()
                    .filter(|&key| key >= cursor.from),
            );
            let room = max - begin;
            let fresh = &mut keys[begin..];
            if fresh.len() > room {
                // The keys kept are the smallest, so the next call resumes by comparing.
                let (_, &mut next, _) = fresh.select_nth_unstable(room);
                keys.truncate(max);
                cursor.from = next;
                break;
            }
            *cursor = Cursor {
                shard: cursor.shard + 1,
                from: 0,
            };
        }
        keys
    }

    /// Removes everything. Values are dropped outside the locks, a shard at a time.
    pub fn clear(&self) {
        for shard in &self.shards {
            let mut table = shard.write();
            let empty = Table::with_hasher(table.hasher().clone());
            let old = std::mem::replace(&mut *table, empty);
            drop(table);
            drop(old);
        }
    }
}

/// Gives memory back after many removals; amortised over the removals that led here.
fn shrink<V>(table: &mut Table<V>) {
    if table.capacity() >= SHRINK_FROM && table.len() * 8 <= table.capacity() {
        let room = table.len() * 2;
        table.shrink_to(room);
    }
}

impl<V: Clone> Default for ShardedMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> fmt::Debug for ShardedMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedMap")
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_and_strided_keys_spread_over_all_shards() {
        let map = ShardedMap::<()>::with_shards(64);
        for stride in [1, 2, 3, 64, 100, 1 << 20] {
            map.clear();
            (0..6400).for_each(|key| assert!(map.insert(key * stride, ()).is_none()));
            let most = map
                .shards
                .iter()
                .map(|shard| shard.read().len())
                .max()
                .unwrap();
            assert!(
                most <= 200,
                "stride {stride}: {most} of 6400 keys in one of 64 shards"
            );
        }
    }

    #[test]
    fn a_table_shrinks_after_mass_removal() {
        let map = ShardedMap::new();
        (0..100_000).for_each(|key| assert_eq!(map.insert(key, key), None));
        (0..100_000).for_each(|key| assert_eq!(map.remove(key), Some(key)));
        let room: usize = map.shards.iter().map(|shard| shard.read().capacity()).sum();
        assert!(room <= map.shards.len() * SHRINK_FROM, "{room} slots kept");
    }

    #[test]
    fn clear_leaves_nothing() {
        let map = ShardedMap::new();
        (0..1000).for_each(|key| assert_eq!(map.insert(key, key), None));
        map.clear();
        assert!(map.is_empty());
        assert_eq!(map.keys_from(&mut Cursor::default(), usize::MAX), []);
    }
}
