//! What changed since a checkpoint, in memory, over the trees.
//!
//! Objects lie in *runs* of neighbouring numbers, which mostly come and change together: a run is found
//! once, and what it holds lies side by side.
//!
//! Once *sealed*, for a checkpoint, it changes no more, and is read without locks.
//!
//! *Invariant.* Whenever `sealed` is set, the shards have nothing behind them; whenever it is not, and a shard's
//! lock is free, all its objects are there.
//!
//! *Locking.* Each run lies in one shard, by its number; a shard's lock is a leaf, and no device is read or written
//! under it. A commit's cut finds no batch half made, because it closes the store's gate.

use std::convert::Infallible;

use holdfast_sync::{Estimate, Padded, PerCore, ShardedCounter};
use holdfast_types::Ino;
use once_cell::race::OnceBox;
use parking_lot::Mutex;

use super::Growth;
use super::objects::{Objects, RUN, bit, bits};
use super::{Object, Shard};
use crate::store::file::content::Waits;

const SHARDS: usize = 64;

/// All changes.
#[derive(Debug)]
pub(in crate::store) struct Memtable {
    shards: Box<[Padded<Mutex<Objects>>]>,
    /// What was in the shards.
    sealed: OnceBox<Vec<Objects>>,
    /// Pages that wait to be written, and those of them that wait for nothing.
    dirty: Estimate,
    ready: Estimate,
    /// The files whose they are, and perhaps others; noted by core.
    dirty_files: PerCore<Mutex<Vec<Ino>>>,
    /// How many keys of the trees changed at most, and bytes that they gain.
    keys: ShardedCounter,
    bytes: ShardedCounter,
    /// What it takes in memory, in bytes.
    memory: ShardedCounter,
}

/// The number of the shard that an object is in.
fn shard_of(ino: Ino) -> usize {
    (ino.0 / RUN) as usize % SHARDS
}

/// Each once, in the order of their numbers.
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
            ready: Estimate::default(),
            dirty_files: PerCore::default(),
            keys: ShardedCounter::new(),
            bytes: ShardedCounter::new(),
            memory: ShardedCounter::new(),
        }
    }

    /// The shard in which a number's object is, if it changed; to be changed, before it is sealed.
    pub(in crate::store) fn shard(&self, ino: Ino) -> Shard<'_> {
        debug_assert!(self.sealed.get().is_none(), "it changes no more");
        Shard::new(self.shards[shard_of(ino)].lock(), &self.memory)
    }

    /// Bytes of memory that it takes, but for pages that wait to be written, about.
    pub(in crate::store) fn memory(&self) -> u64 {
        u64::try_from(self.memory.sum()).unwrap_or(0)
    }

    /// Nothing changes from now on. Nobody passes the gate meanwhile.
    pub(in crate::store) fn seal(&self) {
        // With all shards locked: `sealed` is set before one of them is unlocked.
        let mut shards: Vec<_> = self.shards.iter().map(|shard| shard.lock()).collect();
        let objects = shards.iter_mut().map(|shard| std::mem::take(&mut **shard));
        let sealed = self.sealed.set(Box::new(objects.collect()));
        debug_assert!(sealed.is_ok(), "it is sealed once");
    }

    /// Looks into the shard of this number.
    fn look<R>(&self, number: usize, look: impl FnOnce(&Objects) -> R) -> R {
        if let Some(sealed) = self.sealed.get() {
            return look(&sealed[number]);
        }
        let shard = self.shards[number].lock();
        match self.sealed.get() {
            // In that moment.
            Some(sealed) => look(&sealed[number]),
            None => look(&shard),
        }
    }

    /// Looks at what changed of an object.
    pub(in crate::store) fn with<R>(&self, ino: Ino, look: impl FnOnce(&Object) -> R) -> Option<R> {
        self.look(shard_of(ino), |shard| shard.get(ino).map(look))
    }

    /// About how many pages wait to be written.
    pub(in crate::store) fn dirty(&self) -> u64 {
        self.dirty.get()
    }

    /// About how many of them wait for nothing.
    pub(in crate::store) fn ready(&self) -> u64 {
        self.ready.get()
    }

    /// Counts what a change of a file did to them.
    pub(in crate::store) fn count_dirty(&self, ino: Ino, before: Waits, after: Waits) {
        if before.pages == 0 && after.pages > 0 {
            self.dirty_files.mine().lock().push(ino);
        }
        self.dirty.add(after.pages as i64 - before.pages as i64);
        self.ready.add(after.ready as i64 - before.ready as i64);
    }

    /// Counts what a batch means for the trees.
    pub(in crate::store) fn count(&self, growth: Growth) {
        self.keys.add(growth.keys.cast_signed());
        self.bytes.add(growth.bytes.cast_signed());
    }

    /// What all batches mean for the trees: an estimate, unless everybody else was stopped.
    pub(in crate::store) fn growth(&self) -> Growth {
        let sum = |counter: &ShardedCounter| u64::try_from(counter.sum()).unwrap_or(0);
        Growth {
            keys: sum(&self.keys),
            bytes: sum(&self.bytes),
        }
    }

    /// The files that have pages to be written, and perhaps others, ascending.
    pub(in crate::store) fn dirty_files(&self) -> Vec<Ino> {
        let lists = self.dirty_files.iter();
        ascending(lists.flat_map(|list| list.lock().clone()))
    }

    /// Could there be such files?
    pub(in crate::store) fn has_dirty_files(&self) -> bool {
        self.dirty_files.iter().any(|list| !list.lock().is_empty())
    }

    /// As [`dirty_files`](Self::dirty_files); from now on none.
    pub(in crate::store) fn take_dirty_files(&self) -> Vec<Ino> {
        let lists = self.dirty_files.iter();
        ascending(lists.flat_map(|list| std::mem::take(&mut *list.lock())))
    }

    /// The runs in which objects changed, ascending.
    pub(in crate::store) fn runs(&self) -> Vec<u64> {
        let mut runs: Vec<u64> = Vec::new();
        for number in 0..SHARDS {
            self.look(number, |shard| runs.extend(shard.runs.keys()));
        }
        runs.sort_unstable();
        runs
    }

    /// Shows every object that changed in these runs, in their order. Before it is sealed, those of a run are shown
    /// under their shard's lock.
    pub(in crate::store) fn each_of<E>(
        &self,
        runs: &[u64],
        mut each: impl FnMut(Ino, &Object) -> Result<(), E>,
    ) -> Result<(), E> {
        for number in runs {
            self.look(shard_of(Ino(number * RUN)), |shard| {
                let Some(run) = shard.runs.get(number) else {
                    return Ok(());
                };
                let mut objects = bits(*number, run.there).zip(&run.objects);
                objects.try_for_each(|(ino, object)| each(ino, object))
            })?;
        }
        Ok(())
    }

    /// The numbers of all objects that changed, ascending.
    pub(in crate::store) fn numbers(&self) -> Vec<Ino> {
        let mut numbers = Vec::new();
        let runs = self.runs();
        let Ok(()) = self.each_of(&runs, |ino, _| {
            numbers.push(ino);
            Ok::<(), Infallible>(())
        });
        numbers
    }

    /// Looks at what changed of these objects, whose numbers ascend: at those that did, by their places
    /// among the numbers.
    pub(in crate::store) fn with_each(&self, inos: &[Ino], mut look: impl FnMut(usize, &Object)) {
        let mut at = 0;
        for some in inos.chunk_by(|one, other| one.0 / RUN == other.0 / RUN) {
            self.look(shard_of(some[0]), |shard| {
                if let Some(run) = shard.runs.get(&(some[0].0 / RUN)) {
                    for (place, ino) in (at..).zip(some) {
                        let bit = bit(*ino);
                        if run.there & bit != 0 {
                            look(place, &run.objects[run.place(bit)]);
                        }
                    }
                }
            });
            at += some.len();
        }
    }

    /// Numbers of new objects behind one and up to another, ascending: at most `max`. `None`: nothing there changed
    /// at all.
    pub(in crate::store) fn fresh_within(
        &self,
        after: Ino,
        upto: Ino,
        max: usize,
    ) -> Option<Vec<Ino>> {
        let mut found: Vec<Ino> = Vec::new();
        let mut changed = false;
        let (first, last) = (after.0 / RUN, upto.0 / RUN);
        if last - first < SHARDS as u64 {
            // Few runs: each is asked for, instead of all shards.
            for number in first..=last {
                self.look(shard_of(Ino(number * RUN)), |shard| {
                    if let Some(run) = shard.runs.get(&number) {
                        changed = true;
                        let fresh = bits(number, run.fresh);
                        found.extend(fresh.filter(|ino| after < *ino && *ino <= upto));
                    }
                });
            }
        } else {
            for number in 0..SHARDS {
                self.look(number, |shard| {
                    changed |= !shard.runs.is_empty();
                    let fresh = shard.fresh_after(after).take_while(|ino| *ino <= upto);
                    found.extend(fresh.take(max));
                });
            }
            found.sort_unstable();
        }
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
