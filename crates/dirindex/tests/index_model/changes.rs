//! Readers beside single changes: a name that is there throughout is found and listed once, and
//! one that changes is seen before or after.

use super::{CROWD, PAIR, add, epoch, find, list, model, remove, times, writing};
use crate::index::DirIndexWriter;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

/// Three names are small in the model, five big.
const SMALL: &[&str] = &["a", "b", "c"];
const BIG: &[&str] = &["a", "b", "c", "d", "e"];

type Change = fn(&mut DirIndexWriter<'_>);

/// Checks, beside `change`, that the name of this order is found and listed once.
fn stays(name: &'static str, order: u64, names: &'static [&'static str], change: Change) {
    model(PAIR, names, move |index| {
        let writer = writing(index, change);
        assert_eq!(find(index, name), Some(order));
        writer.join().unwrap();
    });
    model(PAIR, names, move |index| {
        let writer = writing(index, change);
        assert_eq!(times(&list(index, 0), name), 1);
        writer.join().unwrap();
    });
    model(PAIR, names, move |index| {
        let writer = writing(index, change);
        assert_eq!(times(&list(index, order - 1), name), 1, "resumed");
        assert_eq!(times(&list(index, order), name), 0, "resumed behind it");
        writer.join().unwrap();
    });
    model(PAIR, names, move |index| {
        let writer = writing(index, change);
        let guard = epoch::pin();
        let item = index.at(order, &guard).expect("never removed");
        assert_eq!((item.key(), item.payload()), (name.as_bytes(), (order, 1)));
        drop(guard);
        writer.join().unwrap();
    });
}

#[test]
fn the_first_name_goes_beside_readers_of_another() {
    stays("b", 20, SMALL, |writer| remove(writer, "a"));
    stays("b", 20, BIG, |writer| remove(writer, "a"));
}

#[test]
fn the_last_name_goes_and_its_slot_is_taken_again_beside_readers() {
    stays("b", 20, SMALL, |writer| {
        remove(writer, "c");
        add(writer, "x");
        remove(writer, "x");
        add(writer, "y");
    });
}

#[test]
fn gaps_are_closed_beside_readers() {
    stays("c", 30, SMALL, |writer| {
        remove(writer, "a");
        remove(writer, "b");
        add(writer, "x");
    });
}

#[test]
fn gaps_run_together_beside_readers() {
    stays("b", 20, BIG, |writer| {
        remove(writer, "d");
        remove(writer, "e");
        add(writer, "x");
    });
}

#[test]
fn a_middle_name_goes_beside_readers() {
    stays("b", 20, BIG, |writer| {
        remove(writer, "c");
        remove(writer, "a");
    });
}

#[test]
fn a_new_name_is_seen_whole_or_not_at_all() {
    for names in [&SMALL[..0], &SMALL[..2], SMALL, BIG] {
        model(PAIR, names, move |index| {
            let writer = writing(index, |writer| add(writer, "x"));
            let value = (names.len() as u64 + 1) * 10;
            let found = find(index, "x");
            assert!(found.is_none_or(|found| found == value), "{found:?}");
            if found.is_some() {
                assert_eq!(times(&list(index, 0), "a").min(1), names.len().min(1));
            }
            writer.join().unwrap();
            assert_eq!(find(index, "x"), Some(value), "after the insertion");
            assert_eq!(times(&list(index, 0), "x"), 1);
        });
    }
}

#[test]
fn an_order_that_was_told_has_its_name_in_the_listing() {
    for names in [&SMALL[..2], SMALL, BIG] {
        model(PAIR, names, move |index| {
            let before = index.last_order(&epoch::pin());
            let writer = writing(index, |writer| {
                remove(writer, "b");
                add(writer, "x");
            });
            let is_known = index.last_order(&epoch::pin()) > before;
            let listed = list(index, 10);
            assert!(!is_known || times(&listed, "x") == 1);
            writer.join().unwrap();
        });
    }
}

#[test]
fn a_removed_name_is_freed_behind_its_readers() {
    for names in [&SMALL[..1], SMALL, BIG] {
        model(PAIR, names, move |index| {
            let writer = writing(index, |writer| remove(writer, "a"));
            let guard = epoch::pin();
            let item = index.get(b"a", &guard);
            if let Some(item) = item {
                assert_eq!((item.key(), item.order()), (b"a".as_slice(), 10));
            }
            drop(guard);
            writer.join().unwrap();
            assert_eq!(find(index, "a"), None, "after the removal");
        });
    }
}

/// A name that is renamed has left the old key where it has the new one, and has the new one where
/// it has left the old one.
fn moves_at_once(
    names: &'static [&'static str],
    [from, to]: [&'static str; 2],
    order: u64,
    change: Change,
) {
    model(PAIR, names, move |index| {
        let writer = writing(index, change);
        let (new, old) = (find(index, to), find(index, from));
        assert!(new != Some(order) || old.is_none(), "both");
        let listed = list(index, 0);
        assert!(times(&listed, from) + times(&listed, to) >= 1);
        writer.join().unwrap();
        assert_eq!((find(index, from), find(index, to)), (None, Some(order)));
    });
    model(PAIR, names, move |index| {
        let writer = writing(index, change);
        let (old, new) = (find(index, from), find(index, to));
        assert!(old.is_some() || new == Some(order), "neither");
        writer.join().unwrap();
    });
}

#[test]
fn a_rename_shows_one_key_at_a_time() {
    for names in [SMALL, BIG] {
        moves_at_once(names, ["b", "x"], 20, |writer| {
            assert_eq!(writer.rename(b"b", b"x"), Some(20));
        });
    }
}

#[test]
fn a_name_renamed_over_another_is_never_both() {
    for names in [SMALL, BIG] {
        moves_at_once(names, ["a", "b"], 10, |writer| {
            let (moved, replaced) = writer.rename_over(b"a", b"b").unwrap();
            assert_eq!((moved.value, replaced.value), (10, 20));
        });
    }
}

#[test]
fn exchanged_values_are_seen_together() {
    for names in [SMALL, BIG] {
        model(PAIR, names, move |index| {
            let writer = writing(index, |writer| assert!(writer.exchange(b"a", b"b")));
            let found = ["a", "b"].map(|key| find(index, key).unwrap());
            assert!(found[0] == 10 || found[1] == 10, "{found:?}");
            writer.join().unwrap();
            assert_eq!(["a", "b"].map(|key| find(index, key)), [Some(20), Some(10)]);
        });
    }
}

#[test]
fn a_value_changes_with_its_tag() {
    model(PAIR, SMALL, |index| {
        let writer = writing(index, |writer| {
            assert_eq!(writer.replace(b"b", 7, 7), Some((20, 1)));
        });
        let guard = epoch::pin();
        let payload = index.get(b"b", &guard).unwrap().payload();
        assert!(payload == (20, 1) || payload == (7, 7));
        drop(guard);
        writer.join().unwrap();
    });
}

#[test]
fn what_a_value_stands_for_was_made_before() {
    for names in [SMALL, BIG] {
        model(PAIR, names, |index| {
            let made = Arc::new(AtomicU64::new(0));
            let mine = Arc::clone(&made);
            let writer = writing(index, move |writer| {
                mine.store(1, Ordering::Relaxed);
                writer.replace(b"b", 7, 7);
                mine.store(2, Ordering::Relaxed);
                add(writer, "x");
            });
            if find(index, "b") == Some(7) {
                assert!(made.load(Ordering::Relaxed) >= 1);
            }
            if find(index, "x").is_some() {
                assert_eq!(made.load(Ordering::Relaxed), 2);
            }
            writer.join().unwrap();
        });
    }
}

#[test]
fn two_readers_and_a_rename_agree_on_its_moment() {
    model(CROWD, SMALL, |index| {
        let writer = writing(index, |writer| {
            assert_eq!(writer.rename(b"b", b"x"), Some(20));
        });
        let other = Arc::clone(index);
        let reader = loom::thread::spawn(move || {
            let (old, new) = (find(&other, "b"), find(&other, "x"));
            assert!(old.is_some() || new.is_some(), "neither");
        });
        let (new, old) = (find(index, "x"), find(index, "b"));
        assert!(new.is_none() || old.is_none(), "both");
        reader.join().unwrap();
        writer.join().unwrap();
    });
}
