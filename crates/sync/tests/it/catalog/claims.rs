//! Threads that change different names of one big catalog at once.

use super::races::{name, race, rounds};
use holdfast_sync::catalog::{Claim, InsertError, Sums};
use holdfast_sync::{Catalog, epoch};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Adds a name by a claim, with a clock that counts.
fn add(catalog: &Catalog, key: &[u8], value: u64) -> Result<u64, InsertError> {
    static CLOCK: AtomicU64 = AtomicU64::new(1 << 40);
    let mut claim = catalog.claim(key, None);
    let order = claim.next_order(|| CLOCK.fetch_add(256, Ordering::Relaxed));
    claim.insert(key, order, value, 1)?;
    claim.note(order as i64, 1);
    Ok(order)
}

fn remove(catalog: &Catalog, key: &[u8]) -> bool {
    let mut claim = catalog.claim(key, None);
    let removed = claim.remove(key).is_some();
    if removed {
        claim.note(1, -1);
    }
    let wasteful = claim.is_wasteful();
    drop(claim);
    if wasteful {
        catalog.lock().shrink();
    }
    removed
}

fn big() -> Catalog {
    let catalog = Catalog::new();
    for number in 0..100 {
        add(&catalog, &name(number), number).unwrap();
    }
    catalog
}

#[test]
fn a_claim_is_for_what_was_claimed_and_refuses_what_a_writer_would() {
    let catalog = big();
    let mut claim = catalog.claim(b"new", None);
    let order = claim.next_order(|| 0);
    assert_eq!(
        claim.insert(b"new", order - 1, 1, 1),
        Err(InsertError::OutOfOrder)
    );
    assert_eq!(claim.insert(b"new", 1 << 63, 1, 1), Err(InsertError::Full));
    assert_eq!(
        claim.insert(b"new", order, 1 << 60, 1),
        Err(InsertError::Unfit)
    );
    claim.insert(b"new", order, 1, 1).unwrap();
    assert_eq!(
        claim.insert(b"new", order + 256, 1, 1),
        Err(InsertError::Taken)
    );
    assert_eq!(claim.get(b"new").unwrap().order(), order);
    assert!(catalog.try_lock().is_none(), "a part is claimed");
    drop(claim);
    assert_eq!(catalog.last_order(&epoch::pin()), order);
    let mut writer = catalog.try_lock().unwrap();
    assert_eq!(
        writer.insert(b"old", order, 1, 1),
        Err(InsertError::OutOfOrder)
    );
    writer.insert(b"later", order + 1, 1, 1).unwrap();
    drop(writer);
    assert!(catalog.claim(b"last", None).next_order(|| 0) > order + 1);
}

#[test]
fn what_was_announced_is_claimed_as_it_is_by_then() {
    for catalog in [Catalog::new(), big()] {
        let names: Vec<Vec<u8>> = (200..1000).map(name).collect();
        for (made, key) in names.iter().enumerate() {
            let mut claim = Claim::nothing();
            claim.announce(&catalog, key);
            assert!(claim.get(key).is_none() && !claim.has(key), "not claimed");
            // Somebody else is faster, now and then, and lets the table grow.
            let taken = made % 3 == 0;
            if taken {
                add(&catalog, key, 7).unwrap();
            }
            claim.take(&catalog, key, None);
            assert_eq!(claim.has(key), taken);
            if !taken {
                let order = claim.next_order(|| 1 << 50);
                claim.insert(key, order, 8, 1).unwrap();
            }
        }
        // Another name than the one that was announced.
        let mut claim = Claim::nothing();
        claim.announce(&catalog, &names[0]);
        claim.take(&catalog, &names[1], Some(&names[2]));
        assert!(claim.has(&names[1]));
        assert!(claim.exchange(&names[1], &names[2]));
        drop(claim);
        let guard = epoch::pin();
        assert!(names.iter().all(|key| catalog.get(key, &guard).is_some()));
    }
}

#[test]
fn two_claimed_names_are_renamed_exchanged_and_replaced() {
    let catalog = big();
    let [one, two, new] = [name(1), name(2), name(1000)];
    let mut claim = catalog.claim(&one, Some(&two));
    assert!(claim.exchange(&one, &two));
    assert_eq!(claim.get(&one).unwrap().value(), 2);
    drop(claim);
    let mut claim = catalog.claim(&one, Some(&new));
    let order = claim.get(&one).unwrap().order();
    assert_eq!(claim.rename(&new, &one), None);
    assert_eq!(claim.rename(&one, &new), Some(order));
    assert!(claim.get(&one).is_none());
    drop(claim);
    let mut claim = catalog.claim(&new, Some(&two));
    let (moved, replaced) = claim.rename_over(&new, &two).unwrap();
    assert_eq!((moved.value, replaced.value), (2, 1));
    drop(claim);
    let writer = catalog.lock();
    assert_eq!(writer.len(), 99);
    assert_eq!(writer.after(0).count(), 99);
    assert_eq!(writer.get(&two).unwrap().value(), 2);
}

#[test]
fn threads_that_claim_different_names_lose_and_double_none() {
    let catalog = Catalog::new();
    let per_thread = rounds(20_000);
    thread::scope(|scope| {
        for thread in 0..4 {
            let catalog = &catalog;
            scope.spawn(move || {
                for step in 0..per_thread {
                    let key = name(thread * per_thread + step);
                    add(catalog, &key, thread).unwrap();
                    if step % 3 == 0 {
                        assert!(remove(catalog, &key));
                    } else if step % 3 == 1 {
                        let to = [&key[..], b"-moved"].concat();
                        let mut claim = catalog.claim(&key, Some(&to));
                        assert!(claim.rename(&key, &to).is_some());
                    }
                }
            });
        }
    });
    let left = 4 * (per_thread - per_thread.div_ceil(3));
    let sums = catalog.sums(&epoch::pin()).unwrap();
    assert_eq!(u64::from(sums.names), left);
    assert!(sums.tally <= left as i64 && sums.stamp > 1 << 40);
    let writer = catalog.lock();
    assert_eq!(u64::from(writer.len()), left);
    let listed: Vec<_> = writer.after(0).collect();
    assert_eq!(listed.len() as u64, left);
    assert!(listed.is_sorted_by(|one, next| one.order() < next.order()));
    let keys: BTreeSet<&[u8]> = listed.iter().map(|item| item.key()).collect();
    assert_eq!(keys.len() as u64, left, "twice");
    for item in listed {
        assert_eq!(writer.get(item.key()).unwrap().order(), item.order());
    }
}

#[test]
fn a_name_that_many_want_is_made_by_one_and_removed_by_one() {
    let catalog = big();
    let [made, removed] = [AtomicU64::new(0), AtomicU64::new(0)];
    thread::scope(|scope| {
        for seed in 0..4 {
            let (catalog, made, removed) = (&catalog, &made, &removed);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                for _ in 0..rounds(50_000) {
                    let key = name(1000 + rng.random_range(0..8));
                    if rng.random() {
                        let done = add(catalog, &key, 0).is_ok();
                        made.fetch_add(done.into(), Ordering::Relaxed);
                    } else {
                        let done = remove(catalog, &key);
                        removed.fetch_add(done.into(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let left = made.into_inner() - removed.into_inner();
    assert_eq!(u64::from(catalog.lock().len()), 100 + left);
    assert_eq!(catalog.lock().after(0).count() as u64, 100 + left);
}

#[test]
fn renames_that_cross_wait_for_each_other_and_end() {
    let catalog = big();
    thread::scope(|scope| {
        for seed in 0..4 {
            let catalog = &catalog;
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                for round in 0..rounds(100_000) {
                    let [one, two] = [0; 2].map(|_| name(rng.random_range(0..120)));
                    let mut claim = catalog.claim(&one, Some(&two));
                    match rng.random_range(0..3) {
                        0 => {
                            let _ = claim.rename(&one, &two);
                        }
                        1 => {
                            claim.exchange(&one, &two);
                        }
                        _ => {
                            let gone = claim.rename_over(&one, &two).map(|both| both.1);
                            drop(claim);
                            if let Some(gone) = gone {
                                let fresh = name(1000 + 4 * round + seed);
                                add(catalog, &fresh, gone.value).unwrap();
                                let mut claim = catalog.claim(&fresh, Some(&one));
                                let _ = claim.rename(&fresh, &one);
                            }
                        }
                    }
                }
            });
        }
    });
    let writer = catalog.lock();
    let values: BTreeSet<u64> = writer.after(0).map(|item| item.value()).collect();
    assert_eq!(values, (0..100).collect(), "no value got lost");
    assert_eq!(writer.len(), 100);
}

#[test]
fn a_listing_meets_lasting_names_once_beside_claims_and_changes_of_form() {
    const NAMES: u64 = 600;
    let catalog = big();
    let lasting: BTreeMap<Vec<u8>, u64> = (0..100).map(|number| (name(number), number)).collect();
    let other = AtomicU64::new(0);
    let change = |round: u64| {
        let mut rng = SmallRng::seed_from_u64(round);
        let fills = round.is_multiple_of(2);
        thread::scope(|scope| {
            for thread in 0..2 {
                let (catalog, other) = (&catalog, &other);
                let mut rng = SmallRng::seed_from_u64(rng.random());
                scope.spawn(move || {
                    for step in 0..NAMES {
                        let key = name(1000 + 2 * rng.random_range(0..NAMES) + thread);
                        if fills && step % 4 != 0 {
                            let _ = add(catalog, &key, 0);
                        } else {
                            remove(catalog, &key);
                        }
                        other.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        if round.is_multiple_of(7) {
            // Everything but the lasting, by the whole: down to one row again.
            let mut writer = catalog.lock();
            let keys: Vec<Vec<u8>> = writer.after(0).map(|item| item.key().to_vec()).collect();
            for key in keys.iter().filter(|key| !lasting.contains_key(*key)) {
                assert!(writer.remove(key).is_some());
            }
            assert_eq!(writer.len(), 100);
        }
    };
    let look = |rng: &mut SmallRng| {
        let mut seen = BTreeMap::new();
        let mut after = 0;
        let piece = rng.random_range(1..300);
        loop {
            let guard = epoch::pin();
            let listed: Vec<_> = catalog.after(after, &guard).take(piece).collect();
            assert!(listed.is_sorted_by(|one, next| one.order() < next.order()));
            let Some(last) = listed.last() else { break };
            after = last.order();
            for item in &listed {
                if lasting.contains_key(item.key()) {
                    let before = seen.insert(item.key().to_vec(), item.value());
                    assert_eq!(before, None, "twice");
                }
            }
            if listed.len() < piece {
                break;
            }
        }
        assert_eq!(seen, lasting);
        let guard = epoch::pin();
        let number = rng.random_range(0..100);
        let item = catalog.get(&name(number), &guard).expect("never removed");
        assert_eq!(item.value(), number);
        assert!(catalog.last_order(&guard) >= item.order());
    };
    race(rounds(300), change, look);
    let sums: Option<Sums> = catalog.sums(&epoch::pin());
    let listed = catalog.lock().after(0).count();
    assert!(sums.is_none_or(|sums| sums.names as usize == listed));
}
