//! Readers beside changes of form: growing, splitting, shrinking, adopting.

use super::{CROWD, PAIR, add, epoch, find, list, model, remove, times, writing};
use loom::sync::Arc;

#[test]
fn a_row_that_becomes_a_table_keeps_its_names() {
    model(PAIR, &["a", "b", "c"], |index| {
        let writer = writing(index, |writer| add(writer, "d"));
        assert_eq!(find(index, "b"), Some(20));
        let listed = list(index, 0);
        assert!(
            listed.starts_with(&["a", "b", "c"].map(String::from)),
            "{listed:?}"
        );
        writer.join().unwrap();
        assert_eq!(find(index, "d"), Some(40));
    });
}

#[test]
fn segments_that_split_keep_their_names() {
    model(PAIR, &["a", "b", "c", "d"], |index| {
        let writer = writing(index, |writer| {
            ["e", "f", "g", "h"]
                .into_iter()
                .for_each(|name| add(writer, name));
        });
        assert_eq!(find(index, "c"), Some(30));
        assert_eq!(find(index, "a"), Some(10));
        writer.join().unwrap();
        for (at, name) in ["a", "b", "c", "d", "e", "f", "g", "h"].iter().enumerate() {
            assert_eq!(find(index, name), Some((at as u64 + 1) * 10));
        }
    });
}

#[test]
fn a_row_that_grows_beside_a_table_keeps_its_names() {
    // Seven slots.
    model(PAIR, &["a", "b", "c", "d", "e", "f", "g"], |index| {
        let writer = writing(index, |writer| add(writer, "h"));
        let listed = list(index, 20);
        let stay = ["c", "d", "e", "f", "g"].map(String::from);
        assert!(listed.starts_with(&stay), "{listed:?}");
        writer.join().unwrap();
        assert_eq!(list(index, 0).len(), 8);
    });
}

#[test]
fn a_table_that_shrinks_keeps_what_is_left() {
    // One preemption less: these are many steps.
    model(PAIR - 1, &["a", "b", "c", "d", "e", "f"], |index| {
        let writer = writing(index, |writer| {
            ["a", "c", "d", "e", "f"]
                .into_iter()
                .for_each(|name| remove(writer, name));
        });
        assert_eq!(find(index, "b"), Some(20));
        assert_eq!(times(&list(index, 0), "b"), 1);
        writer.join().unwrap();
        assert_eq!(list(index, 0), ["b"]);
    });
}

#[test]
fn an_emptied_index_goes_on_to_count() {
    model(PAIR, &["a"], |index| {
        let writer = writing(index, |writer| {
            remove(writer, "a");
            add(writer, "b");
        });
        let last = index.last_order(&epoch::pin());
        assert!(last == 10 || last == 20);
        let listed = list(index, 0);
        assert!(listed.len() <= 1, "one at a time: {listed:?}");
        writer.join().unwrap();
        assert_eq!(find(index, "b"), Some(20));
    });
}

#[test]
fn names_taken_over_appear_together() {
    model(PAIR, &["a", "b"], |index| {
        let writer = writing(index, |writer| {
            let apart = crate::index::DirIndex::new();
            ["x", "y"]
                .into_iter()
                .for_each(|name| add(&mut apart.lock(), name));
            writer.adopt(apart);
        });
        let listed = list(index, 0);
        assert!(listed == ["a", "b"] || listed == ["x", "y"], "{listed:?}");
        writer.join().unwrap();
    });
}

#[test]
fn cleared_names_go_together() {
    model(PAIR, &["a", "b", "c", "d", "e"], |index| {
        let writer = writing(index, |writer| writer.clear());
        let listed = list(index, 0);
        assert!(listed.len() == 5 || listed.is_empty(), "{listed:?}");
        writer.join().unwrap();
        assert_eq!(index.last_order(&epoch::pin()), 50);
    });
}

#[test]
fn two_writers_and_a_reader_get_along() {
    model(CROWD, &["a"], |index| {
        let writer = writing(index, |writer| add(writer, "x"));
        let other = Arc::clone(index);
        let second = loom::thread::spawn(move || add(&mut other.lock(), "y"));
        assert_eq!(find(index, "a"), Some(10));
        writer.join().unwrap();
        second.join().unwrap();
        assert_eq!(list(index, 0).len(), 3);
    });
}
