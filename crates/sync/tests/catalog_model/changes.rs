//! Readers beside single changes: a name that is there throughout is found and listed once, and
//! one that changes is seen before or after.

use super::{CROWD, PAIR, add, epoch, find, list, model, remove, times, writing};
use crate::catalog::{Catalog, CatalogWriter};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

/// Three names are small in the model, five big.
const SMALL: &[&str] = &["a", "b", "c"];
const BIG: &[&str] = &["a", "b", "c", "d", "e"];

type Change = fn(&mut CatalogWriter<'_>);

/// Checks, beside `change`, that the name of this order is found and listed once.
fn stays(name: &'static str, order: u64, names: &'static [&'static str], change: Change) {
    model(PAIR, names, move |catalog| {
        let writer = writing(catalog, change);
        assert_eq!(find(catalog, name), Some(order));
        writer.join().unwrap();
    });
    model(PAIR, names, move |catalog| {
        let writer = writing(catalog, change);
        assert_eq!(times(&list(catalog, 0), name), 1);
        writer.join().unwrap();
    });
    model(PAIR, names, move |catalog| {
        let writer = writing(catalog, change);
        assert_eq!(times(&list(catalog, order - 1), name), 1, "resumed");
        assert_eq!(times(&list(catalog, order), name), 0, "resumed behind it");
        writer.join().unwrap();
    });
    model(PAIR, names, move |catalog| {
        let writer = writing(catalog, change);
        let guard = epoch::pin();
        let item = catalog.at(order, &guard).expect("never removed");
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
        model(PAIR, names, move |catalog| {
            let writer = writing(catalog, |writer| add(writer, "x"));
            let value = (names.len() as u64 + 1) * 10;
            let found = find(catalog, "x");
            assert!(found.is_none_or(|found| found == value), "{found:?}");
            if found.is_some() {
                assert_eq!(times(&list(catalog, 0), "a").min(1), names.len().min(1));
            }
            writer.join().unwrap();
            assert_eq!(find(catalog, "x"), Some(value), "after the insertion");
            assert_eq!(times(&list(catalog, 0), "x"), 1);
        });
    }
}

#[test]
fn a_removed_name_is_freed_behind_its_readers() {
    for names in [&SMALL[..1], SMALL, BIG] {
        model(PAIR, names, move |catalog| {
            let writer = writing(catalog, |writer| remove(writer, "a"));
            let guard = epoch::pin();
            let item = catalog.get(b"a", &guard);
            if let Some(item) = item {
                assert_eq!((item.key(), item.order()), (b"a".as_slice(), 10));
            }
            drop(guard);
            writer.join().unwrap();
            assert_eq!(find(catalog, "a"), None, "after the removal");
        });
    }
}

/// Which of two keys a reader finds in one version, if it does not change meanwhile.
fn both(catalog: &Arc<Catalog>, keys: [&str; 2]) -> Option<[Option<u64>; 2]> {
    let version = catalog.version();
    let found = keys.map(|key| find(catalog, key));
    catalog.is_at(version).then_some(found)
}

#[test]
fn a_rename_shows_one_key_at_a_time() {
    for names in [SMALL, BIG] {
        model(PAIR, names, move |catalog| {
            let writer = writing(catalog, |writer| {
                assert_eq!(writer.rename(b"b", b"x"), Some(20));
            });
            if let Some(found) = both(catalog, ["x", "b"]) {
                assert!(
                    matches!(found, [Some(20), None] | [None, Some(20)]),
                    "{found:?}"
                );
            }
            writer.join().unwrap();
            assert_eq!(both(catalog, ["b", "x"]), Some([None, Some(20)]));
        });
        model(PAIR, names, move |catalog| {
            let writer = writing(catalog, |writer| {
                assert_eq!(writer.rename(b"b", b"x"), Some(20));
            });
            // Without asking for the version: the later search does not see an earlier state.
            let (new, old) = (find(catalog, "x"), find(catalog, "b"));
            assert!(new.is_none() || old.is_none(), "back in time");
            let listed = list(catalog, 0);
            assert_eq!(times(&listed, "b") + times(&listed, "x"), 1);
            writer.join().unwrap();
        });
    }
}

#[test]
fn exchanged_values_are_seen_together() {
    for names in [SMALL, BIG] {
        model(PAIR, names, move |catalog| {
            let writer = writing(catalog, |writer| assert!(writer.exchange(b"a", b"b")));
            if let Some(found) = both(catalog, ["a", "b"]) {
                let found = found.map(Option::unwrap);
                assert!(found == [10, 20] || found == [20, 10], "{found:?}");
            }
            writer.join().unwrap();
        });
    }
}

#[test]
fn a_name_renamed_over_another_is_never_both() {
    for names in [SMALL, BIG] {
        model(PAIR, names, move |catalog| {
            let writer = writing(catalog, |writer| {
                let (moved, replaced) = writer.rename_over(b"a", b"b").unwrap();
                assert_eq!((moved.value, replaced.value), (10, 20));
            });
            if let Some(found) = both(catalog, ["a", "b"]) {
                assert!(
                    found == [Some(10), Some(20)] || found == [None, Some(10)],
                    "{found:?}"
                );
            }
            writer.join().unwrap();
        });
    }
}

#[test]
fn a_value_changes_with_its_tag() {
    model(PAIR, SMALL, |catalog| {
        let writer = writing(catalog, |writer| {
            assert_eq!(writer.replace(b"b", 7, 7), Some((20, 1)));
        });
        let guard = epoch::pin();
        let payload = catalog.get(b"b", &guard).unwrap().payload();
        assert!(payload == (20, 1) || payload == (7, 7));
        drop(guard);
        writer.join().unwrap();
    });
}

#[test]
fn what_a_value_stands_for_was_made_before() {
    for names in [SMALL, BIG] {
        model(PAIR, names, |catalog| {
            let made = Arc::new(AtomicU64::new(0));
            let mine = Arc::clone(&made);
            let writer = writing(catalog, move |writer| {
                mine.store(1, Ordering::Relaxed);
                writer.replace(b"b", 7, 7);
                mine.store(2, Ordering::Relaxed);
                add(writer, "x");
            });
            if find(catalog, "b") == Some(7) {
                assert!(made.load(Ordering::Relaxed) >= 1);
            }
            if find(catalog, "x").is_some() {
                assert_eq!(made.load(Ordering::Relaxed), 2);
            }
            writer.join().unwrap();
        });
    }
}

#[test]
fn two_readers_and_a_rename_agree_on_its_moment() {
    model(CROWD, SMALL, |catalog| {
        let writer = writing(catalog, |writer| {
            assert_eq!(writer.rename(b"b", b"x"), Some(20));
        });
        let other = Arc::clone(catalog);
        let reader = loom::thread::spawn(move || both(&other, ["b", "x"]));
        let mine = both(catalog, ["x", "b"]);
        for found in [mine, reader.join().unwrap()].into_iter().flatten() {
            assert_eq!(found.iter().flatten().count(), 1, "{found:?}");
        }
        writer.join().unwrap();
    });
}
