//! Many threads on few objects.

use super::Fixture;
use holdfast_sync::epoch;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const THREADS: u64 = 4;

/// `HOLDFAST_EFFORT=deep` takes ten times as long; Miri a thousandth of the rounds.
fn rounds(usual: u64) -> u64 {
    if cfg!(miri) {
        usual.div_ceil(1000)
    } else if std::env::var("HOLDFAST_EFFORT").is_ok_and(|effort| effort == "deep") {
        usual * 10
    } else {
        usual
    }
}

#[test]
fn lookups_puts_and_evictions_of_the_same_objects_neither_leak_nor_free_twice() {
    let fixture = Fixture::new();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let fixture = &fixture;
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(thread);
                for _ in 0..rounds(40_000) {
                    let key = random.random_range(1..6);
                    let held = match fixture.index.get(key) {
                        Some(held) => held,
                        None => match fixture.publish(key) {
                            Some(held) => held,
                            None => continue,
                        },
                    };
                    held.check(key);
                    match random.random_range(0..8) {
                        0 => drop(held.mark_freeing()),
                        1 => held.unmark_freeing(),
                        2 => drop(held.clone()),
                        3 => assert!(held.clone().release().is_none()),
                        4 => {
                            held.clone().into_raw();
                            assert!(held.forget(1).is_none(), "still in use");
                        }
                        _ => {}
                    }
                    assert!(held.is_live(), "I3: in use, hence not freeing");
                    if let Some(freeing) = held.release() {
                        freeing.check(key);
                        assert_eq!(freeing.uses(), 0);
                        fixture.index.free(freeing);
                    } else if random.random_range(0..4) == 0 {
                        fixture.evict(key);
                    }
                }
                epoch::flush();
            });
        }
    });
    // I6: the sum of the counters is the number of objects.
    fixture.settle(fixture.index.len());
    for key in 1..6 {
        fixture.evict(key);
    }
    assert_eq!(fixture.index.len(), 0);
    fixture.settle(0);
}

#[test]
fn what_is_there_throughout_is_seen_exactly_once_beside_creation_eviction_and_trimming() {
    let steady = (1..=2000).map(|key| key * 37);
    let fixture = Fixture::with(steady.clone());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (fixture, done) = (&fixture, &done);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(thread);
                while !done.load(Ordering::Relaxed) {
                    let key = random.random_range(1..80_000_u64);
                    if key % 37 == 0 {
                        fixture.index.trim();
                    } else if fixture.publish(key).is_some() {
                        fixture.evict(random.random_range(1..2000) * 37 + 1);
                        fixture.evict(key);
                    }
                }
                epoch::flush();
            });
        }
        for _ in 0..rounds(30) {
            let mut seen = HashMap::<u64, u32>::new();
            let mut next = Some(0);
            while let Some(from) = next {
                next = fixture.index.scan(from, u64::MAX, &epoch::pin(), |held| {
                    held.check(held.key());
                    *seen.entry(held.key()).or_default() += 1;
                    true
                });
            }
            assert!(seen.values().all(|times| *times == 1), "I1: none twice");
            assert!(steady.clone().all(|key| seen.contains_key(&key)), "I1: all");
        }
        done.store(true, Ordering::Relaxed);
    });
    fixture.settle(fixture.index.len());
}
