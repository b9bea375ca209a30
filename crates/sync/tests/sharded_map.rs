//! `ShardedMap` against a `BTreeMap`, and under threads that race.

use holdfast_sync::{Cursor, ShardedMap};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u32),
    GetOrInsert(u64, u32),
    Remove(u64),
    RemoveIfEven(u64),
    Get(u64),
    Walk(usize),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let key = || prop_oneof![8 => 0..200_u64, 1 => any::<u64>()];
    prop_oneof![
        6 => (key(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
        3 => (key(), any::<u32>()).prop_map(|(key, value)| Step::GetOrInsert(key, value)),
        3 => key().prop_map(Step::Remove),
        3 => key().prop_map(Step::RemoveIfEven),
        3 => key().prop_map(Step::Get),
        1 => (1..50_usize).prop_map(Step::Walk),
        1 => Just(Step::Clear),
    ]
}

fn walk(map: &ShardedMap<u32>, max: usize) -> Vec<u64> {
    let mut cursor = Cursor::default();
    let mut all = Vec::new();
    loop {
        let keys = map.keys_from(&mut cursor, max);
        assert!(keys.len() <= max);
        if keys.is_empty() {
            return all;
        }
        all.extend(keys);
    }
}

fn apply(step: &Step, map: &ShardedMap<u32>, model: &mut BTreeMap<u64, u32>) {
    match *step {
        Step::Insert(key, value) => assert_eq!(map.insert(key, value), model.insert(key, value)),
        Step::GetOrInsert(key, value) => {
            let expected = *model.entry(key).or_insert(value);
            assert_eq!(map.get_or_insert_with(key, || value), expected);
        }
        Step::Remove(key) => assert_eq!(map.remove(key), model.remove(&key)),
        Step::RemoveIfEven(key) => {
            let expected = model.get(&key).copied().filter(|value| value % 2 == 0);
            if expected.is_some() {
                model.remove(&key);
            }
            assert_eq!(map.remove_if(key, |value| value % 2 == 0), expected);
        }
        Step::Get(key) => {
            assert_eq!(map.get(key), model.get(&key).copied());
            assert_eq!(map.get_with(key, |value| *value), model.get(&key).copied());
            assert_eq!(map.contains(key), model.contains_key(&key));
        }
        Step::Walk(max) => {
            let mut keys = walk(map, max);
            keys.sort_unstable();
            assert!(keys.iter().eq(model.keys()));
            let mut seen = BTreeMap::new();
            map.for_each_shard(|entries| seen.extend(entries.map(|(key, &value)| (key, value))));
            assert_eq!(&seen, model);
        }
        Step::Clear => {
            map.clear();
            model.clear();
        }
    }
    assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
}

proptest! {
    #[test]
    fn it_behaves_like_a_btree_map(steps in prop::collection::vec(step(), 1..400)) {
        let map = ShardedMap::new();
        let mut model = BTreeMap::new();
        for step in &steps {
            apply(step, &map, &mut model);
        }
    }
}

#[test]
fn racing_makers_agree_on_one_value() {
    let map = ShardedMap::new();
    let made = AtomicU64::new(0);
    let sums: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..20_000)
                        .map(|key| {
                            map.get_or_insert_with(key, || made.fetch_add(1, Ordering::Relaxed))
                        })
                        .sum()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(made.into_inner(), 20_000);
    assert!(sums.iter().all(|&sum| sum == sums[0]));
}

#[test]
fn a_walk_returns_every_lasting_key_once_while_others_come_and_go() {
    let map = ShardedMap::new();
    let lasting: BTreeSet<u64> = (0..50_000).filter(|key| key % 5 == 0).collect();
    lasting
        .iter()
        .for_each(|&key| assert!(map.insert(key, 0).is_none()));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for key in (0..50_000).filter(|key| key % 5 != 0) {
                    map.insert(key, 1);
                }
                for key in 0..50_000 {
                    map.remove_if(key, |&value| value == 1);
                }
            }
        });
        for round in 1..20 {
            let keys = walk(&map, round * 37);
            let seen: Vec<u64> = keys
                .into_iter()
                .filter(|key| lasting.contains(key))
                .collect();
            assert_eq!(seen.len(), lasting.len());
            assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), lasting);
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// The inode cache's use: take a reference under the read lock, evict only what nobody refers
/// to. Whoever got a reference must never see its object evicted.
#[test]
fn a_value_taken_under_the_lock_is_never_evicted() {
    struct Object {
        references: AtomicU64,
        evicted: AtomicBool,
    }
    let map: ShardedMap<Arc<Object>> = ShardedMap::new();
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for key in (0..200_000).map(|i| i % 7) {
                    let make = || {
                        Arc::new(Object {
                            references: 0.into(),
                            evicted: AtomicBool::new(false),
                        })
                    };
                    drop(map.get_or_insert_with(key, make));
                    let object = map.get_with(key, |object| {
                        object.references.fetch_add(1, Ordering::Relaxed);
                        Arc::clone(object)
                    });
                    if let Some(object) = object {
                        taken.fetch_add(1, Ordering::Relaxed);
                        assert!(!object.evicted.load(Ordering::Relaxed));
                        object.references.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            });
        }
        scope.spawn(|| {
            for key in (0..200_000).map(|i| i % 7) {
                let unused = |object: &Arc<Object>| {
                    let unused = object.references.load(Ordering::Relaxed) == 0;
                    if unused {
                        object.evicted.store(true, Ordering::Relaxed);
                    }
                    unused
                };
                drop(map.remove_if(key, unused));
            }
        });
    });
    assert!(taken.into_inner() > 0);
}
