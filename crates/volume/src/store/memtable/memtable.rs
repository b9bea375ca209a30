//! The memtable: all changes since a checkpoint.
//!
//! Once *sealed*, for a checkpoint, a memtable does not change and is read without locks.
//!
//! *Invariant.* While `sealed` is set, the shards are empty. While it is not set, and a shard's
//! lock is free, that shard has all its objects.
//!
//! *Locking.* An object belongs to one shard, by its number. A shard's lock is a leaf, and no
//! device is accessed under it. A commit point sees no half-applied batch, because it closes the
//! barrier.

use std::ops::Bound;

use holdfast_sync::{Estimate, Padded, PerCore, ShardedCounter};
use holdfast_types::Ino;
use once_cell::race::OnceBox;
use parking_lot::Mutex;

use super::TreeCost;
use super::shard::Objects;
use super::{Object, Shard};

const SHARDS: usize = 64;
/// Neighbouring numbers share a shard: the core allocates as many to one thread.
const RUN: u64 = 64;

#[derive(Debug)]
pub(in crate::store) struct Memtable {
    shards: Box<[Padded<Mutex<Objects>>]>,
    /// The shards' contents.
    sealed: OnceBox<Vec<Objects>>,
    /// Dirty pages.
    dirty: Estimate,
    /// Files with dirty pages, and perhaps others, by core.
    dirty_files: PerCore<Mutex<Vec<Ino>>>,
    /// Upper bounds of changed keys of the trees, and of the bytes that they gain.
    keys: ShardedCounter,
    bytes: ShardedCounter,
    /// Bytes of memory.
    memory: ShardedCounter,
}

/// The shard of an object.
fn shard_of(ino: Ino) -> usize {
    (ino.0 / RUN) as usize % SHARDS
}

/// Sorted, without duplicates.
fn ascending(files: impl Iterator<Item = Ino>) -> Vec<Ino> {
    let mut files: Vec<Ino> = files.collect();
    files.sort_unstable();
    files.dedup();
    files
}

impl Memtable {
    pub(in crate::store) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Padded(Mutex::default())).collect(),
            sealed: OnceBox::new(),
            dirty: Estimate::default(),
            dirty_files: PerCore::default(),
            keys: ShardedCounter::new(),
            bytes: ShardedCounter::new(),
            memory: ShardedCounter::new(),
        }
    }

    /// Locks the shard of an object, to change it. Only before the memtable is sealed.
    pub(in crate::store) fn shard(&self, ino: Ino) -> Shard<'_> {
        debug_assert!(self.sealed.get().is_none(), "it changes no more");
        Shard::new(self.shards[shard_of(ino)].lock(), &self.memory)
    }

    /// Bytes of memory without dirty pages, approximately.
    pub(in crate::store) fn memory(&self) -> u64 {
        u64::try_from(self.memory.sum()).unwrap_or(0)
    }

    /// Makes it immutable. The barrier is closed.
    pub(in crate::store) fn seal(&self) {
        // With all shards locked: `sealed` is set before any of them is unlocked.
        let mut shards: Vec<_> = self.shards.iter().map(|shard| shard.lock()).collect();
        let objects = shards.iter_mut().map(|shard| std::mem::take(&mut **shard));
        let sealed = self.sealed.set(Box::new(objects.collect()));
        debug_assert!(sealed.is_ok(), "it is sealed once");
    }

    /// Calls `look` with the shard of this index.
    fn look<R>(&self, number: usize, look: impl FnOnce(&Objects) -> R) -> R {
        if let Some(sealed) = self.sealed.get() {
            return look(&sealed[number]);
        }
        let shard = self.shards[number].lock();
        match self.sealed.get() {
            // Sealed before the lock was acquired.
            Some(sealed) => look(&sealed[number]),
            None => look(&shard),
        }
    }

    /// Calls `look` with the changes of an object, if there are any.
    pub(in crate::store) fn with<R>(&self, ino: Ino, look: impl FnOnce(&Object) -> R) -> Option<R> {
        self.look(shard_of(ino), |shard| shard.get(&ino).map(|it| look(it)))
    }

    /// Dirty pages, approximately.
    pub(in crate::store) fn dirty(&self) -> u64 {
        self.dirty.get()
    }

    /// Counts the change of a file's dirty pages.
    pub(in crate::store) fn count_dirty(&self, ino: Ino, before: usize, after: usize) {
        if before == 0 && after > 0 {
            self.dirty_files.mine().lock().push(ino);
        }
        self.dirty.add(after as i64 - before as i64);
    }

    /// Counts a batch's cost.
    pub(in crate::store) fn count(&self, tree_cost: TreeCost) {
        self.keys.add(tree_cost.keys.cast_signed());
        self.bytes.add(tree_cost.bytes.cast_signed());
    }

    /// The cost of all batches: exact only while the barrier is closed.
    pub(in crate::store) fn tree_cost(&self) -> TreeCost {
        let sum = |counter: &ShardedCounter| u64::try_from(counter.sum()).unwrap_or(0);
        TreeCost {
            keys: sum(&self.keys),
            bytes: sum(&self.bytes),
        }
    }

    /// The files with dirty pages, and perhaps others, ascending.
    pub(in crate::store) fn dirty_files(&self) -> Vec<Ino> {
        let lists = self.dirty_files.iter();
        ascending(lists.flat_map(|list| list.lock().clone()))
    }

    /// May there be such files?
    pub(in crate::store) fn has_dirty_files(&self) -> bool {
        self.dirty_files.iter().any(|list| !list.lock().is_empty())
    }

    /// As [`dirty_files`](Self::dirty_files), and clears the list.
    pub(in crate::store) fn take_dirty_files(&self) -> Vec<Ino> {
        let lists = self.dirty_files.iter();
        ascending(lists.flat_map(|list| std::mem::take(&mut *list.lock())))
    }

    /// Calls `each` with these objects, which ascend. Before the memtable is sealed, a shard's lock
    /// is held meanwhile.
    pub(in crate::store) fn each_of<E>(
        &self,
        inos: &[Ino],
        mut each: impl FnMut(Ino, &Object) -> Result<(), E>,
    ) -> Result<(), E> {
        for run in inos.chunk_by(|one, other| one.0 / RUN == other.0 / RUN) {
            self.look(shard_of(run[0]), |shard| {
                let mut objects = shard.range(run[0]..=run[run.len() - 1]);
                objects.try_for_each(|(ino, object)| each(*ino, object))
            })?;
        }
        Ok(())
    }

    /// The numbers of all objects, ascending.
    pub(in crate::store) fn numbers(&self) -> Vec<Ino> {
        let mut numbers = Vec::new();
        for number in 0..SHARDS {
            self.look(number, |shard| numbers.extend(shard.keys()));
        }
        numbers.sort_unstable();
        numbers
    }

    /// New objects after `after` and up to `upto`, ascending: at most `max`. `None`: no object
    /// there changed.
    pub(in crate::store) fn fresh_within(
        &self,
        after: Ino,
        upto: Ino,
        max: usize,
    ) -> Option<Vec<Ino>> {
        let (mut found, mut changed) = (Vec::new(), false);
        for number in 0..SHARDS {
            self.look(number, |shard| {
                let within = (Bound::Excluded(after), Bound::Included(upto));
                let objects = shard.range(within).inspect(|_| changed = true);
                let fresh = objects.filter(|(_, object)| object.fresh);
                found.extend(fresh.map(|(ino, _)| *ino).take(max));
            });
        }
        found.sort_unstable();
        found.truncate(max);
        changed.then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_seen_as_before_by_those_who_come_at_that_moment_as_well() {
        for _ in 0..50 {
            let memtable = Memtable::new();
            for number in 1..=300 {
                memtable.shard(Ino(number)).create(Ino(number)).names_mut();
            }
            let seen = || {
                for number in 1..=300 {
                    assert_eq!(
                        memtable.with(Ino(number), |object| object.fresh),
                        Some(true)
                    );
                }
                let fresh = memtable.fresh_within(Ino(0), Ino(u64::MAX), 900);
                assert_eq!(fresh.map(|fresh| fresh.len()), Some(300));
            };
            std::thread::scope(|scope| {
                let threads = [(); 3].map(|()| scope.spawn(seen));
                memtable.seal();
                seen();
                for thread in threads {
                    thread.join().unwrap();
                }
            });
            assert_eq!(memtable.numbers().len(), 300);
        }
    }

    #[test]
    fn objects_of_a_run_keep_apart_and_in_order() {
        let memtable = Memtable::new();
        for number in [70, 5, 64, 127, 69, 66] {
            let ino = Ino(number);
            memtable.shard(ino).create(ino).names_mut();
        }
        memtable.shard(Ino(68)).changed(Ino(68)).record = Some(None);
        let numbers: Vec<u64> = memtable.numbers().iter().map(|ino| ino.0).collect();
        assert_eq!(numbers, [5, 64, 66, 68, 69, 70, 127]);
        assert_eq!(memtable.with(Ino(68), Object::is_freed), Some(true));
        assert_eq!(memtable.with(Ino(69), Object::is_freed), Some(false));
        assert_eq!(memtable.with(Ino(67), Object::is_freed), None);
        let fresh = |after, max| -> Vec<u64> {
            let fresh = memtable.fresh_within(Ino(after), Ino(u64::MAX), max);
            let fresh = fresh.unwrap_or_default();
            for upto in [after, after + 1, 66, 70, 127, 9000] {
                let within = memtable.fresh_within(Ino(after), Ino(upto.max(after)), max);
                let within = within.unwrap_or_default();
                let expected = fresh.iter().filter(|ino| ino.0 <= upto);
                assert!(within.iter().eq(expected), "{within:?} up to {upto}");
            }
            fresh.iter().map(|ino| ino.0).collect()
        };
        assert_eq!(fresh(0, 9), [5, 64, 66, 69, 70, 127]);
        assert_eq!(fresh(66, 2), [69, 70]);
        assert_eq!(memtable.fresh_within(Ino(67), Ino(68), 9), Some(Vec::new()));
        assert_eq!(memtable.fresh_within(Ino(128), Ino(700), 9), None);
        assert_eq!(Memtable::new().fresh_within(Ino(1), Ino(u64::MAX), 9), None);
        memtable.shard(Ino(69)).forget(Ino(69));
        assert_eq!(fresh(66, 9), [70, 127]);
        for number in [64, 66, 70, 127] {
            memtable.shard(Ino(number)).forget(Ino(number));
        }
        assert_eq!(fresh(5, 9), [] as [u64; 0]);
        assert_eq!(memtable.numbers(), [Ino(5), Ino(68)]);
    }
}
