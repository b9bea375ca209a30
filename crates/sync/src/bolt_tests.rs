//! Tests of [`Bolt`](crate::Bolt), apart from it: a model compiles that a second time.

use crate::Bolt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn whoever_has_it_is_alone_and_nobody_waits_for_ever() {
    let bolts = [const { Bolt::new() }; 3];
    // Pairs that differ while one of them is changed.
    let pairs = [const { [const { AtomicU64::new(0) }; 2] }; 3];
    let (threads, rounds) = (8, 20_000);
    thread::scope(|scope| {
        for first in 0..threads {
            let (bolts, pairs) = (&bolts, &pairs);
            scope.spawn(move || {
                for round in 0..rounds {
                    let at = (first + round) % bolts.len();
                    let _locked = bolts[at].lock();
                    let [one, other] = &pairs[at];
                    let count = one.load(Ordering::Relaxed);
                    assert_eq!(other.load(Ordering::Relaxed), count);
                    one.store(count + 1, Ordering::Relaxed);
                    if round % 1000 == 0 {
                        // Others fall asleep.
                        thread::sleep(Duration::from_micros(50));
                    }
                    other.store(count + 1, Ordering::Relaxed);
                }
            });
        }
    });
    let sum: u64 = pairs
        .iter()
        .map(|[one, _]| one.load(Ordering::Relaxed))
        .sum();
    assert_eq!(sum, (threads * rounds) as u64);
    assert!(bolts.iter().all(|bolt| bolt.try_lock().is_some()));
}

#[test]
fn who_tries_does_not_wait() {
    let bolt = Bolt::new();
    let held = bolt.lock();
    assert!(bolt.try_lock().is_none());
    drop(held);
    assert!(bolt.try_lock().is_some());
}

#[test]
fn who_sleeps_is_woken() {
    let bolt = Bolt::new();
    let mut waits: Vec<Duration> = (0..15)
        .map(|_| {
            let held = bolt.lock();
            thread::scope(|scope| {
                let sleeper = scope.spawn(|| {
                    drop(bolt.lock());
                    Instant::now()
                });
                thread::sleep(Duration::from_millis(5));
                let given = Instant::now();
                drop(held);
                sleeper.join().unwrap().saturating_duration_since(given)
            })
        })
        .collect();
    waits.sort_unstable();
    assert!(waits[0] < Duration::from_secs(1), "{waits:?}");
}
