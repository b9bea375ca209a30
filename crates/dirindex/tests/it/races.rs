//! Threads that race: readers check what must hold at every moment.

use holdfast_dirindex::{DirIndex, DirIndexWriter, InsertError};
use holdfast_sync::epoch;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn name(number: u64) -> Vec<u8> {
    format!("some-name-{number:06}").into_bytes()
}

fn tag(value: u64) -> u8 {
    (value % 16) as u8
}

fn add(writer: &mut DirIndexWriter<'_>, key: &[u8], value: u64) -> Result<(), InsertError> {
    let order = writer.last_order() + 1;
    writer.insert(key, order, value, tag(value))
}

/// Sets the flag when its thread ends, even by a panic: otherwise the others would never end.
struct Evictions<'a>(&'a AtomicBool);

impl Drop for Evictions<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `change` for the given number of rounds, and `look` in two more threads until it is done
/// (but at least once).
fn race(rounds: u64, mut change: impl FnMut(u64) + Send, look: impl Fn(&mut SmallRng) + Sync) {
    let done = &AtomicBool::new(false);
    let start = &Barrier::new(3);
    let look = &look;
    thread::scope(|scope| {
        let mut threads: Vec<_> = (0..2)
            .map(|seed| {
                scope.spawn(move || {
                    let _ends = Evictions(done);
                    let mut rng = SmallRng::seed_from_u64(seed);
                    start.wait();
                    loop {
                        look(&mut rng);
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                })
            })
            .collect();
        threads.push(scope.spawn(move || {
            let _ends = Evictions(done);
            start.wait();
            for round in 0..rounds {
                change(round);
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        }));
        // Joined by hand: the thread sanitizer does not see how a scope ends.
        for thread in threads {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
    });
}

fn rounds(usual: u64) -> u64 {
    // The sanitizers' runs set fewer.
    let cases: Option<u64> = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    cases
        .map_or(usual, |cases| usual * cases.min(256) / 256)
        .max(3)
}

const LASTING: u64 = 5;

/// A index that some names never leave, while `size` others come and go at random, by removal,
/// insertion and renaming.
fn churn_beside_lasting_names(size: u64, usual_rounds: u64) {
    let index = DirIndex::new();
    {
        let mut writer = index.lock();
        for number in 0..LASTING {
            add(&mut writer, &name(number), number).unwrap();
        }
    }
    let mut rng = SmallRng::seed_from_u64(7);
    let change = |round| {
        let fills = round % 2 == 0;
        for step in 0..size * 3 {
            let key = name(LASTING + rng.random_range(0..size));
            let mut writer = index.lock();
            match step % 4 {
                0 => {
                    writer.rename(&key, &name(LASTING + rng.random_range(0..size)));
                }
                1 => {
                    // The lasting names change their values.
                    let number = rng.random_range(0..LASTING);
                    let value = number + LASTING * rng.random_range(0..1000);
                    writer.replace(&name(number), value, tag(value)).unwrap();
                }
                _ if fills => {
                    let _ = add(&mut writer, &key, step);
                }
                _ => {
                    writer.remove(&key);
                }
            }
        }
        if !fills {
            for number in 0..size {
                index.lock().remove(&name(LASTING + number));
            }
            assert_eq!(u64::from(index.lock().len()), LASTING);
        }
    };
    let look = |rng: &mut SmallRng| {
        let guard = epoch::pin();
        let number = rng.random_range(0..LASTING);
        let item = index.get(&name(number), &guard).expect("never removed");
        let (value, tagged) = item.payload();
        assert_eq!((value % LASTING, tagged), (number, tag(value)));
        let same = index.at(item.order(), &guard).expect("never removed");
        assert_eq!(same.key(), item.key());

        let listed: Vec<_> = index.after(0, &guard).collect();
        assert!(listed.is_sorted_by(|one, next| one.order() < next.order()));
        let lasting = listed.iter().filter(|item| item.key() < &*name(LASTING));
        assert_eq!(lasting.count() as u64, LASTING);
        assert!(listed.len() as u64 >= LASTING && index.len(&guard) as u64 >= LASTING);
        if let Some(other) = listed.last() {
            // A name is found before its order counts, and the next name is added after that.
            assert!(other.order() <= index.last_order(&guard) + 1);
        }
    };
    race(rounds(usual_rounds), change, look);
    assert!(index.lock().len() as u64 >= LASTING);
}

#[test]
fn a_lasting_name_is_found_and_listed_once_while_small_ones_churn() {
    churn_beside_lasting_names(20, 4000);
}

#[test]
fn a_lasting_name_is_found_and_listed_once_while_forms_change() {
    churn_beside_lasting_names(100, 1200);
}

#[test]
fn a_lasting_name_is_found_and_listed_once_while_tables_grow_and_shrink() {
    churn_beside_lasting_names(3000, 40);
}

#[test]
fn a_listing_in_pieces_meets_every_lasting_name_once() {
    const NAMES: u64 = 2000;
    let index = DirIndex::new();
    let lasting: BTreeSet<Vec<u8>> = (0..NAMES)
        .filter(|number| number % 7 == 0)
        .map(name)
        .collect();
    {
        let mut writer = index.lock();
        (0..NAMES).for_each(|number| add(&mut writer, &name(number), 0).unwrap());
    }
    let mut rng = SmallRng::seed_from_u64(3);
    let change = |_| {
        let key = name(rng.random_range(0..NAMES));
        if !lasting.contains(&key) {
            let mut writer = index.lock();
            if writer.remove(&key).is_none() {
                add(&mut writer, &key, 0).unwrap();
            }
        }
    };
    let look = |rng: &mut SmallRng| {
        let end = index.last_order(&epoch::pin());
        let mut seen = Vec::new();
        let mut after = 0;
        loop {
            let guard = epoch::pin();
            let before = seen.len();
            let piece = rng.random_range(1..200);
            for item in index.after(after, &guard).take(piece) {
                after = item.order();
                seen.push(item.key().to_vec());
            }
            if seen.len() == before || after >= end {
                break;
            }
        }
        let kept: Vec<_> = seen.iter().filter(|key| lasting.contains(*key)).collect();
        assert_eq!(kept.len(), lasting.len());
        assert!(
            kept.into_iter().eq(lasting.iter()),
            "in the order of insertion"
        );
    };
    race(rounds(200_000), change, look);
}
