//! One thread: every form does what an ordered map does.

use holdfast_dirindex::{DirIndex, DirIndexWriter, InsertError, Item};
use holdfast_sync::epoch;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

fn name(number: u64) -> Vec<u8> {
    format!("name-{number}").into_bytes()
}

fn fill(index: &DirIndex, count: u64) {
    let mut writer = index.lock();
    for number in 1..=count {
        writer
            .insert(&name(number), number, number + 100, 3)
            .unwrap();
    }
}

#[test]
fn names_are_found_by_key_and_by_order_in_every_form() {
    for count in [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 80, 81, 500, 5000] {
        let index = DirIndex::new();
        fill(&index, count);
        let guard = epoch::pin();
        assert_eq!(u64::from(index.len(&guard)), count);
        assert_eq!(index.last_order(&guard), count);
        for number in 1..=count {
            let item = index.get(&name(number), &guard).unwrap();
            assert_eq!(item.key(), name(number));
            assert_eq!((item.order(), item.payload()), (number, (number + 100, 3)));
            assert_eq!(index.at(number, &guard).unwrap().key(), name(number));
        }
        assert!(index.get(&name(count + 1), &guard).is_none());
        assert!(index.at(0, &guard).is_none() && index.at(count + 1, &guard).is_none());
        for after in [0, 1, count / 2, count] {
            let listed: Vec<u64> = index.after(after, &guard).map(Item::order).collect();
            assert_eq!(listed, (after + 1..=count).collect::<Vec<_>>());
        }
    }
}

#[test]
fn orders_grow_and_survive_the_closing_of_gaps() {
    let index = DirIndex::new();
    fill(&index, 1000);
    let mut writer = index.lock();
    for number in 1..1000 {
        assert_eq!(writer.remove(&name(number)).unwrap().order, number);
    }
    assert_eq!(writer.get(&name(1000)).unwrap().order(), 1000);
    assert_eq!(writer.at(1000).unwrap().value(), 1100);
    assert!(writer.remove(&name(1000)).is_some());
    assert!(writer.is_empty());
    assert_eq!(writer.last_order(), 1000);
    assert_eq!(
        writer.insert(b"late", 1000, 1, 0),
        Err(InsertError::OutOfOrder)
    );
    writer.insert(b"late", 1001, 1, 0).unwrap();
    writer.clear();
    assert_eq!((writer.len(), writer.last_order()), (0, 1001));
}

#[test]
fn what_does_not_fit_is_refused() {
    let index = DirIndex::new();
    let mut writer = index.lock();
    assert_eq!(writer.insert(b"", 1, 0, 0), Err(InsertError::Unfit));
    assert_eq!(
        writer.insert(&[b'x'; 256], 1, 0, 0),
        Err(InsertError::Unfit)
    );
    assert_eq!(writer.insert(b"x", 1, 1 << 60, 0), Err(InsertError::Unfit));
    assert_eq!(writer.insert(b"x", 1, 0, 16), Err(InsertError::Unfit));
    assert_eq!(writer.insert(b"x", 0, 0, 0), Err(InsertError::OutOfOrder));
    assert_eq!(writer.insert(b"x", 1 << 63, 0, 0), Err(InsertError::Full));
    writer
        .insert(&[b'x'; 255], (1 << 63) - 1, (1 << 60) - 1, 15)
        .unwrap();
    assert_eq!(
        writer.insert(&[b'x'; 255], u64::MAX >> 1, 0, 0),
        Err(InsertError::OutOfOrder)
    );
    let item = writer.get(&[b'x'; 255]).unwrap();
    assert_eq!(item.payload(), ((1 << 60) - 1, 15));
    assert_eq!(writer.rename(&[b'x'; 255], b""), None);
    assert_eq!(writer.last_order(), (1 << 63) - 1);
}

#[test]
fn names_prepared_apart_are_taken_over_at_once() {
    let index = DirIndex::new();
    fill(&index, 3);
    let apart = DirIndex::new();
    fill(&apart, 100);
    assert!(apart.lock().remove(&name(1)).is_some());
    let mut writer = index.lock();
    writer.adopt(apart);
    assert_eq!((writer.len(), writer.last_order()), (99, 100));
    assert!(writer.get(&name(1)).is_none() && writer.get(&name(2)).is_some());
    writer.adopt(DirIndex::new());
    assert_eq!((writer.len(), writer.last_order()), (0, 0));
}

type Model = BTreeMap<Vec<u8>, (u64, u64)>;

fn check(writer: &DirIndexWriter<'_>, model: &Model) {
    assert_eq!(writer.len() as usize, model.len());
    let listed: Vec<_> = writer
        .after(0)
        .map(|item| (item.key().to_vec(), (item.order(), item.value())))
        .collect();
    assert!(listed.is_sorted_by_key(|(_, (order, _))| *order));
    let sorted: Model = listed.into_iter().collect();
    assert_eq!(&sorted, model);
    for (key, &(order, value)) in model {
        let item = writer.get(key).unwrap();
        assert_eq!((item.order(), item.value()), (order, value));
        assert_eq!(writer.at(order).unwrap().key(), key);
        assert_eq!(writer.after(order - 1).next().unwrap().order(), order);
    }
}

fn apply(writer: &mut DirIndexWriter<'_>, model: &mut Model, step: u64, number: u64, what: u8) {
    let (key, other) = (name(number), name(number * 7 % 150));
    match what {
        0..=2 => {
            let done = writer.insert(&key, step, step * 3, 1);
            match model.entry(key) {
                Entry::Occupied(_) => assert_eq!(done, Err(InsertError::Taken)),
                Entry::Vacant(place) => {
                    assert_eq!(done, Ok(()));
                    place.insert((step, step * 3));
                }
            }
        }
        3 | 4 => {
            let gone = writer.remove(&key).map(|gone| (gone.order, gone.value));
            assert_eq!(gone, model.remove(&key));
        }
        5 => {
            let done = writer.rename(&key, &other);
            let held = model
                .get(&key)
                .copied()
                .filter(|_| !model.contains_key(&other));
            assert_eq!(done, held.map(|(order, _)| order));
            if let Some(held) = held {
                model.remove(&key);
                model.insert(other, held);
            }
        }
        6 => {
            let done = writer.rename_over(&key, &other);
            let both = (model.get(&key).copied(), model.get(&other).copied());
            let (Some(moved), Some(replaced), true) = (both.0, both.1, key != other) else {
                assert_eq!(done, None);
                return;
            };
            let done = done.unwrap();
            assert_eq!((done.0.order, done.0.value), moved);
            assert_eq!((done.1.order, done.1.value), replaced);
            model.remove(&key);
            model.insert(other, (replaced.0, moved.1));
        }
        7 => {
            let old = writer.replace(&key, step, 2).map(|old| old.0);
            assert_eq!(old, model.get(&key).map(|held| held.1));
            if let Some(held) = model.get_mut(&key) {
                held.1 = step;
            }
        }
        _ => {
            let both = model.contains_key(&key) && model.contains_key(&other);
            assert_eq!(writer.exchange(&key, &other), both);
            if both {
                let (one, two) = (model[&key].1, model[&other].1);
                model.get_mut(&key).unwrap().1 = two;
                model.get_mut(&other).unwrap().1 = one;
            }
        }
    }
}

proptest! {
    #[test]
    fn it_behaves_like_an_ordered_map(
        steps in prop::collection::vec((0_u64..150, 0_u8..9), 0..1200),
        phases in prop::collection::vec(0_u8..3, 1..6),
    ) {
        let index = DirIndex::new();
        let mut model = Model::new();
        let mut writer = index.lock();
        let per_phase = steps.len() / phases.len() + 1;
        for (step, &(number, what)) in steps.iter().enumerate() {
            // Some phases mostly add, some mostly remove: so that all forms are met.
            let what = match phases[step / per_phase] {
                1 if what > 5 => 0,
                2 if what < 3 => 3,
                _ => what,
            };
            apply(&mut writer, &mut model, step as u64 + 1, number, what);
            if step % 16 == 0 {
                check(&writer, &model);
            }
        }
        check(&writer, &model);
        let last = writer.last_order();
        prop_assert!(model.values().all(|&(order, _)| order <= last));
        for key in model.keys() {
            prop_assert!(writer.remove(key).is_some());
        }
        prop_assert!(writer.is_empty() && writer.last_order() == last);
    }
}
