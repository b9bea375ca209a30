//! Threads that race: readers check what must hold at every moment.

use holdfast_dirindex::{Catalog, CatalogWriter, InsertError, Item};
use holdfast_sync::epoch;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread;

fn name(number: u64) -> Vec<u8> {
    format!("some-name-{number:06}").into_bytes()
}

fn tag(value: u64) -> u8 {
    (value % 16) as u8
}

fn add(writer: &mut CatalogWriter<'_>, key: &[u8], value: u64) -> Result<(), InsertError> {
    let order = writer.last_order() + 1;
    writer.insert(key, order, value, tag(value))
}

/// Sets the flag when its thread ends, by a panic as well: else the others would go on for ever.
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
        // Not left to the scope's end, which the thread sanitizer does not see.
        for thread in threads {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
    });
}

fn rounds(usual: u64) -> u64 {
    // The sanitizers' runs ask for less.
    let cases: Option<u64> = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    cases
        .map_or(usual, |cases| usual * cases.min(256) / 256)
        .max(3)
}

const LASTING: u64 = 5;

/// A catalog that some names never leave, while `size` others come and go at random, by removal,
/// insertion and renaming.
fn churn_beside_lasting_names(size: u64, usual_rounds: u64) {
    let catalog = Catalog::new();
    {
        let mut writer = catalog.lock();
        for number in 0..LASTING {
            add(&mut writer, &name(number), number).unwrap();
        }
    }
    let mut rng = SmallRng::seed_from_u64(7);
    let change = |round| {
        let fills = round % 2 == 0;
        for step in 0..size * 3 {
            let key = name(LASTING + rng.random_range(0..size));
            let mut writer = catalog.lock();
            match step % 4 {
                0 => {
                    writer.rename(&key, &name(LASTING + rng.random_range(0..size)));
                }
                1 => {
                    // The lasting ones change what they lead to.
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
                catalog.lock().remove(&name(LASTING + number));
            }
            assert_eq!(u64::from(catalog.lock().len()), LASTING);
        }
    };
    let look = |rng: &mut SmallRng| {
        let guard = epoch::pin();
        let number = rng.random_range(0..LASTING);
        let item = catalog.get(&name(number), &guard).expect("never removed");
        let (value, tagged) = item.payload();
        assert_eq!((value % LASTING, tagged), (number, tag(value)));
        let same = catalog.at(item.order(), &guard).expect("never removed");
        assert_eq!(same.key(), item.key());

        let listed: Vec<_> = catalog.after(0, &guard).collect();
        assert!(listed.is_sorted_by(|one, next| one.order() < next.order()));
        let lasting = listed.iter().filter(|item| item.key() < &*name(LASTING));
        assert_eq!(lasting.count() as u64, LASTING);
        assert!(listed.len() as u64 >= LASTING && catalog.len(&guard) as u64 >= LASTING);
        if let Some(other) = listed.last() {
            // A name is there before its order is told, and the next one comes after that.
            assert!(other.order() <= catalog.last_order(&guard) + 1);
        }
    };
    race(rounds(usual_rounds), change, look);
    assert!(catalog.lock().len() as u64 >= LASTING);
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

/// Rounds of changes, counted where they begin and where they end: odd within one.
#[derive(Default)]
struct Rounds(AtomicU64);

impl Rounds {
    fn change(&self, change: impl FnOnce()) {
        let count = self.0.load(Ordering::Relaxed);
        self.0.store(count + 1, Ordering::SeqCst);
        change();
        self.0.store(count + 2, Ordering::SeqCst);
    }

    /// What `look` saw between two changes, or within one (then `Ok(false)` if the round was even,
    /// and `Ok(true)` if it was odd); `Err` if it was more than that.
    fn look<R>(&self, look: impl FnOnce() -> R) -> Option<(Option<bool>, R)> {
        let count = self.0.load(Ordering::SeqCst);
        let seen = look();
        fence(Ordering::SeqCst);
        let within = (count % 2 == 1).then_some(count / 2 % 2 == 1);
        (self.0.load(Ordering::SeqCst) == count).then_some((within, seen))
    }
}

/// A name goes to and fro between two keys, beside `others` that stay.
fn rename_to_and_fro(others: u64) {
    let keys = [b"the one key".as_slice(), b"the other".as_slice()];
    let catalog = Catalog::new();
    {
        let mut writer = catalog.lock();
        (0..others).for_each(|number| add(&mut writer, &name(number), 0).unwrap());
        writer.insert(keys[0], 1_000_000, 9, 9).unwrap();
    }
    let rounds_done = Rounds::default();
    let change = |round| {
        let (from, to) = (keys[round as usize % 2], keys[(round as usize + 1) % 2]);
        rounds_done.change(|| {
            assert_eq!(catalog.lock().rename(from, to), Some(1_000_000));
        });
    };
    let look = |rng: &mut SmallRng| {
        let guard = epoch::pin();
        let first: usize = rng.random_range(0..2);
        let seen = rounds_done
            .look(|| [first, 1 - first].map(|which| catalog.get(keys[which], &guard).is_some()));
        match seen {
            Some((None, [one, other])) => assert!(one != other, "between the renames"),
            // The later look must not see what was before, if the first saw what came after.
            Some((Some(backwards), [one, other])) => {
                let from = usize::from(backwards);
                let saw_after = one == (first != from);
                assert!(!saw_after || other != one, "{one} and then {other}");
            }
            None => {}
        }
        for item in keys.iter().filter_map(|key| catalog.get(key, &guard)) {
            assert_eq!((item.order(), item.payload()), (1_000_000, (9, 9)));
        }
        let listed = catalog.after(999_999, &guard).map(|item| item.key());
        assert_eq!(listed.filter(|key| keys.contains(key)).count(), 1);
        assert!(keys.contains(&catalog.at(1_000_000, &guard).unwrap().key()));
    };
    race(rounds(1_000_000), change, look);
}

#[test]
fn a_rename_never_shows_both_keys_or_neither_in_a_small_catalog() {
    rename_to_and_fro(3);
}

#[test]
fn a_rename_never_shows_both_keys_or_neither_in_a_big_catalog() {
    rename_to_and_fro(100);
}

/// Two names exchange what they lead to.
fn exchange_to_and_fro(others: u64) {
    let (one, two) = (b"first".as_slice(), b"second".as_slice());
    let catalog = Catalog::new();
    {
        let mut writer = catalog.lock();
        (0..others).for_each(|number| add(&mut writer, &name(number), 0).unwrap());
        add(&mut writer, one, 1).unwrap();
        add(&mut writer, two, 2).unwrap();
    }
    let rounds_done = Rounds::default();
    let change = |_| rounds_done.change(|| assert!(catalog.lock().exchange(one, two)));
    let look = |_: &mut SmallRng| {
        let guard = epoch::pin();
        let seen =
            rounds_done.look(|| [one, two].map(|key| catalog.get(key, &guard).unwrap().value()));
        match seen {
            Some((None, values)) => assert_eq!(values.iter().sum::<u64>(), 3),
            Some((Some(backwards), [first, second])) => {
                let after = if backwards { 1 } else { 2 };
                assert!(first != after || second != first, "{first}, then {second}");
            }
            None => {}
        }
    };
    race(rounds(1_000_000), change, look);
}

/// A name is renamed over another and made again.
fn replace_again_and_again(others: u64) {
    let (one, two) = (b"first".as_slice(), b"second".as_slice());
    let catalog = Catalog::new();
    {
        let mut writer = catalog.lock();
        (0..others).for_each(|number| add(&mut writer, &name(number), 0).unwrap());
        add(&mut writer, one, 1).unwrap();
        add(&mut writer, two, 0).unwrap();
    }
    let change = |round| {
        let (moved, replaced) = catalog.lock().rename_over(one, two).unwrap();
        assert_eq!((moved.value, replaced.value), (round + 1, round));
        add(&mut catalog.lock(), one, round + 2).unwrap();
    };
    let look = |_: &mut SmallRng| {
        let guard = epoch::pin();
        let value = |key| catalog.get(key, &guard).map(Item::value);
        let (before, then) = (value(two), value(one));
        let after = value(two).expect("the target is always there");
        let before = before.expect("the target is always there");
        assert!(after >= before, "back in time");
        assert!(then.is_none_or(|then| then > before), "both keys");
        assert!(then.is_none_or(|then| then <= after + 2));
    };
    race(rounds(500_000), change, look);
}

#[test]
fn what_is_renamed_over_another_is_never_both() {
    replace_again_and_again(0);
    replace_again_and_again(100);
}

#[test]
fn exchanged_values_are_seen_together_in_a_small_catalog() {
    exchange_to_and_fro(0);
}

#[test]
fn exchanged_values_are_seen_together_in_a_big_catalog() {
    exchange_to_and_fro(100);
}

#[test]
fn a_listing_in_pieces_meets_every_lasting_name_once() {
    const NAMES: u64 = 2000;
    let catalog = Catalog::new();
    let lasting: BTreeSet<Vec<u8>> = (0..NAMES)
        .filter(|number| number % 7 == 0)
        .map(name)
        .collect();
    {
        let mut writer = catalog.lock();
        (0..NAMES).for_each(|number| add(&mut writer, &name(number), 0).unwrap());
    }
    let mut rng = SmallRng::seed_from_u64(3);
    let change = |_| {
        let key = name(rng.random_range(0..NAMES));
        if !lasting.contains(&key) {
            let mut writer = catalog.lock();
            if writer.remove(&key).is_none() {
                add(&mut writer, &key, 0).unwrap();
            }
        }
    };
    let look = |rng: &mut SmallRng| {
        let end = catalog.last_order(&epoch::pin());
        let mut seen = Vec::new();
        let mut after = 0;
        loop {
            let guard = epoch::pin();
            let before = seen.len();
            let piece = rng.random_range(1..200);
            for item in catalog.after(after, &guard).take(piece) {
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

#[test]
fn names_taken_over_appear_together() {
    let catalog = Catalog::new();
    let change = |round| {
        let apart = Catalog::new();
        {
            let mut writer = apart.lock();
            for number in 0..40 + round % 7 {
                add(&mut writer, &name(number), round).unwrap();
            }
        }
        let mut writer = catalog.lock();
        if round % 3 == 0 {
            writer.clear();
        }
        writer.adopt(apart);
    };
    let look = |_: &mut SmallRng| {
        let guard = epoch::pin();
        let values: Vec<u64> = catalog.after(0, &guard).map(|item| item.value()).collect();
        if let Some(&round) = values.first() {
            assert_eq!(values.len() as u64, 40 + round % 7);
            assert!(
                values.iter().all(|&value| value == round),
                "one of the sets"
            );
        }
    };
    race(rounds(5000), change, look);
}

#[test]
fn writers_take_turns() {
    let catalog = Catalog::new();
    let per_thread = rounds(4000);
    thread::scope(|scope| {
        for thread in 0..4 {
            let catalog = &catalog;
            scope.spawn(move || {
                for step in 0..per_thread {
                    let key = name(thread * per_thread + step);
                    add(&mut catalog.lock(), &key, thread).unwrap();
                    if step % 3 == 0 {
                        let removed = catalog.lock().remove(&key).unwrap();
                        assert_eq!(removed.value, thread);
                    }
                }
            });
        }
    });
    let writer = catalog.lock();
    let left = per_thread - per_thread.div_ceil(3);
    assert_eq!(u64::from(writer.len()), 4 * left);
    assert_eq!(writer.last_order(), 4 * per_thread);
}

#[test]
fn what_a_reader_holds_stays_while_it_is_removed() {
    let catalog = Catalog::new();
    let removed = AtomicU64::new(0);
    (0..100).for_each(|number| add(&mut catalog.lock(), &name(number), number).unwrap());
    let guard = epoch::pin();
    let items: Vec<_> = catalog.after(0, &guard).collect();
    let mut rest = catalog.after(50, &guard);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..100 {
                catalog.lock().remove(&name(number)).unwrap();
                removed.fetch_add(1, Ordering::Relaxed);
            }
            epoch::flush();
        });
    });
    assert_eq!(removed.into_inner(), 100);
    for (number, item) in items.iter().enumerate() {
        assert_eq!(item.key(), name(number as u64));
    }
    assert!(rest.all(|item| item.order() > 50));
    assert!(catalog.is_empty());
}
