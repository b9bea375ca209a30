//! Claims beside claims of other names, beside readers, and beside changes of the whole catalog.

use super::catalog_primitive::set_lane;
use super::{CROWD, PAIR, add, epoch, find, list, model, remove, times};
use crate::catalog::Catalog;
use loom::sync::Arc;
use loom::thread::JoinHandle;

/// Three names are small in the model, five big.
const SMALL: &[&str] = &["a", "b", "c"];
const BIG: &[&str] = &["a", "b", "c", "d", "e"];

/// Adds a name by a claim; tells whether it was not there.
fn enter(catalog: &Catalog, key: &str, value: u64) -> bool {
    let mut claim = catalog.claim(key.as_bytes(), None);
    let order = claim.next_order(|| 1000);
    let done = claim.insert(key.as_bytes(), order, value, 1).is_ok();
    if done {
        claim.note(order as i64, 1);
    }
    done
}

fn leave(catalog: &Catalog, key: &str) -> bool {
    let mut claim = catalog.claim(key.as_bytes(), None);
    claim.remove(key.as_bytes()).is_some()
}

fn rename(catalog: &Catalog, from: &str, to: &str) -> Option<u64> {
    let [from, to] = [from, to].map(str::as_bytes);
    catalog.claim(from, Some(to)).rename(from, to)
}

/// Makes both lanes and their rows, so that the scenario does not begin with that.
fn warm_up(catalog: &Catalog) {
    for lane in [1, 0] {
        set_lane(lane);
        assert!(enter(catalog, "w", 0) && leave(catalog, "w"));
    }
}

/// Runs `change` in a thread of its own, with the other lane.
fn beside<R: 'static>(
    catalog: &Arc<Catalog>,
    change: impl FnOnce(&Catalog) -> R + 'static,
) -> JoinHandle<R> {
    let catalog = Arc::clone(catalog);
    loom::thread::spawn(move || {
        set_lane(1);
        change(&catalog)
    })
}

fn names(catalog: &Catalog) -> usize {
    catalog.len(&epoch::pin()) as usize
}

#[test]
fn claims_of_different_names_both_succeed() {
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| enter(catalog, "x", 1));
        assert!(enter(catalog, "y", 2));
        assert!(other.join().unwrap());
        assert_eq!((find(catalog, "x"), find(catalog, "y")), (Some(1), Some(2)));
        assert_eq!((names(catalog), list(catalog, 0).len()), (7, 7));
    });
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| leave(catalog, "a"));
        assert!(leave(catalog, "b"));
        assert!(other.join().unwrap());
        assert_eq!(list(catalog, 0), ["c", "d", "e"]);
        assert_eq!(names(catalog), 3);
    });
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| rename(catalog, "b", "x"));
        assert!(leave(catalog, "a") && enter(catalog, "a", 7));
        assert_eq!(other.join().unwrap(), Some(20));
        assert_eq!(list(catalog, 0), ["x", "c", "d", "e", "a"]);
    });
}

#[test]
fn claims_of_the_same_name_take_turns() {
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| enter(catalog, "x", 1));
        let mine = enter(catalog, "x", 2);
        assert!(mine != other.join().unwrap(), "one of both");
        assert_eq!(find(catalog, "x"), Some(if mine { 2 } else { 1 }));
        assert_eq!(times(&list(catalog, 0), "x"), 1);
    });
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| leave(catalog, "a"));
        assert!(leave(catalog, "a") != other.join().unwrap(), "one of both");
        assert_eq!(names(catalog), 4);
    });
}

#[test]
fn renames_that_cross_come_to_an_end() {
    model(PAIR - 1, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| {
            catalog.claim(b"a", Some(b"b")).exchange(b"a", b"b")
        });
        assert!(catalog.claim(b"b", Some(b"a")).exchange(b"b", b"a"));
        assert!(other.join().unwrap());
        assert_eq!(
            (find(catalog, "a"), find(catalog, "b")),
            (Some(10), Some(20))
        );
    });
}

#[test]
fn a_reader_beside_a_claim_finds_what_stays_once_and_what_goes_whole() {
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| {
            assert!(leave(catalog, "a") && enter(catalog, "x", 5));
        });
        assert!(find(catalog, "x").is_none_or(|value| value == 5));
        assert!(find(catalog, "a").is_none_or(|value| value == 10));
        assert_eq!(find(catalog, "b"), Some(20));
        other.join().unwrap();
    });
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let before = catalog.last_order(&epoch::pin());
        let other = beside(catalog, |catalog| {
            assert!(leave(catalog, "b") && enter(catalog, "x", 5));
        });
        let end = catalog.last_order(&epoch::pin());
        let listed = list(catalog, 10);
        assert_eq!((times(&listed, "c"), times(&listed, "a")), (1, 0));
        let is_known = end > before;
        assert!(!is_known || times(&listed, "x") == 1, "its order was known");
        other.join().unwrap();
    });
}

#[test]
fn a_claimed_rename_shows_one_key_at_a_time() {
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| rename(catalog, "b", "x"));
        let (new, old) = (find(catalog, "x"), find(catalog, "b"));
        assert!(new.is_none() || old.is_none(), "both");
        let listed = list(catalog, 10);
        assert_eq!(times(&listed, "b") + times(&listed, "x"), 1);
        assert_eq!(other.join().unwrap(), Some(20));
    });
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| rename(catalog, "b", "x"));
        let (old, new) = (find(catalog, "b"), find(catalog, "x"));
        assert!(old.is_some() || new.is_some(), "neither");
        other.join().unwrap();
    });
}

#[test]
fn a_catalog_that_becomes_big_beside_a_claim_keeps_all_names() {
    model(PAIR - 1, SMALL, |catalog| {
        let other = beside(catalog, |catalog| enter(catalog, "x", 1));
        assert!(enter(catalog, "y", 2));
        assert!(other.join().unwrap());
        assert_eq!((find(catalog, "x"), find(catalog, "y")), (Some(1), Some(2)));
        assert_eq!((names(catalog), list(catalog, 0).len()), (5, 5));
    });
    model(PAIR - 1, SMALL, |catalog| {
        let other = beside(catalog, |catalog| {
            assert!(enter(catalog, "x", 1) && enter(catalog, "y", 2));
        });
        assert_eq!(find(catalog, "b"), Some(20));
        assert_eq!(times(&list(catalog, 0), "b"), 1);
        other.join().unwrap();
        assert_eq!(names(catalog), 5);
    });
}

#[test]
fn whoever_locks_the_whole_waits_for_claims() {
    model(PAIR, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| {
            enter(catalog, "x", 1);
        });
        let mut writer = catalog.lock();
        let before = writer.len();
        assert_eq!(writer.after(0).count(), before as usize);
        add(&mut writer, "y");
        remove(&mut writer, "a");
        assert_eq!(writer.len(), before);
        let sums = writer.sums().expect("there are lanes");
        assert_eq!((sums.names, sums.tally), (before, i64::from(before) - 3));
        drop(writer);
        other.join().unwrap();
        assert_eq!((find(catalog, "x"), find(catalog, "a")), (Some(1), None));
    });
    model(PAIR - 1, BIG, |catalog| {
        warm_up(catalog);
        let other = beside(catalog, |catalog| enter(catalog, "x", 1));
        // To the small form, and lanes go.
        let mut writer = catalog.lock();
        ["a", "c", "d", "e"]
            .into_iter()
            .for_each(|name| remove(&mut writer, name));
        drop(writer);
        assert!(other.join().unwrap());
        assert_eq!(list(catalog, 0), ["b", "x"]);
    });
}

#[test]
fn claims_of_three_threads_get_along() {
    model(CROWD, BIG, |catalog| {
        warm_up(catalog);
        let one = beside(catalog, |catalog| enter(catalog, "x", 1));
        // Shares the lane.
        let two = beside(catalog, |catalog| leave(catalog, "a"));
        assert_eq!(rename(catalog, "b", "y"), Some(20));
        assert!(one.join().unwrap() && two.join().unwrap());
        assert_eq!(list(catalog, 0), ["y", "c", "d", "e", "x"]);
    });
}

#[test]
fn a_claim_that_is_alone_ends_before_another_lane_is_made() {
    model(PAIR, BIG, |catalog| {
        set_lane(0);
        assert!(enter(catalog, "w", 0) && leave(catalog, "w"));
        let other = beside(catalog, |catalog| enter(catalog, "x", 7));
        assert!(rename(catalog, "a", "y").is_some());
        assert!(enter(catalog, "z", 8));
        assert!(other.join().unwrap());
        assert_eq!(names(catalog), BIG.len() + 2);
        for key in ["x", "y", "z"] {
            assert!(find(catalog, key).is_some(), "{key}");
        }
        assert!(find(catalog, "a").is_none());
    });
}
