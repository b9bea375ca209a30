//! Searches along the listing beside changes: they find what a search by hash would find.

use super::{PAIR, epoch, find, model, writing};
use crate::catalog::{Catalog, CatalogWriter, LookupHint};

/// Five names are big in the model.
const BIG: &[&str] = &["a", "b", "c", "d", "e"];

/// A trail whose next name is `c`.
fn before_c(catalog: &Catalog) -> LookupHint {
    let lookup_hint = LookupHint::new();
    assert_eq!(
        (
            along(catalog, &lookup_hint, "a"),
            along(catalog, &lookup_hint, "b")
        ),
        (Some(10), Some(20))
    );
    lookup_hint
}

fn along(catalog: &Catalog, lookup_hint: &LookupHint, name: &str) -> Option<u64> {
    let guard = epoch::pin();
    let item = catalog.get_along(name.as_bytes(), lookup_hint, &guard)?;
    assert_eq!(item.key(), name.as_bytes());
    Some(item.value())
}

/// Runs a change beside a reader.
fn beside(
    change: fn(&mut CatalogWriter<'_>),
    reader: impl Fn(&Catalog, &LookupHint) + Send + Sync + 'static,
) {
    model(PAIR, BIG, move |catalog| {
        let lookup_hint = before_c(catalog);
        let other = writing(catalog, change);
        reader(catalog, &lookup_hint);
        other.join().unwrap();
    });
}

#[test]
fn what_was_missed_by_hash_is_not_found_along_the_row() {
    beside(
        |writer| assert!(writer.remove(b"c").is_some()),
        |catalog, lookup_hint| {
            let by_hash = find(catalog, "c");
            let by_row = along(catalog, lookup_hint, "c");
            assert!(by_hash.is_some() || by_row.is_none(), "it came back");
            assert_eq!(along(catalog, lookup_hint, "d"), Some(40));
        },
    );
}

fn exchange(writer: &mut CatalogWriter<'_>) {
    assert!(writer.exchange(b"c", b"d"));
}

#[test]
fn names_that_are_exchanged_never_lead_to_the_same() {
    // The first name is found before the exchange or after it, the second one not earlier.
    beside(exchange, |catalog, lookup_hint| {
        let (first, second) = (
            along(catalog, lookup_hint, "c"),
            along(catalog, lookup_hint, "d"),
        );
        assert!((first, second) != (Some(40), Some(40)), "half of it");
    });
    beside(exchange, |catalog, lookup_hint| {
        let (first, second) = (find(catalog, "d"), along(catalog, lookup_hint, "c"));
        assert!((first, second) != (Some(30), Some(30)), "half of it");
    });
    beside(exchange, |catalog, lookup_hint| {
        let (first, second) = (along(catalog, lookup_hint, "c"), find(catalog, "d"));
        assert!((first, second) != (Some(40), Some(40)), "half of it");
        assert_eq!(along(catalog, lookup_hint, "e"), Some(50));
    });
}

fn rename(writer: &mut CatalogWriter<'_>) {
    assert_eq!(writer.rename(b"c", b"x"), Some(30));
}

#[test]
fn a_renamed_name_is_found_under_one_key_at_a_time() {
    beside(rename, |catalog, lookup_hint| {
        let (new, old) = (find(catalog, "x"), along(catalog, lookup_hint, "c"));
        assert!(new.is_none() || old.is_none(), "both");
    });
    beside(rename, |catalog, lookup_hint| {
        let (old, new) = (along(catalog, lookup_hint, "c"), find(catalog, "x"));
        assert!(old.is_some() || new.is_some(), "neither");
    });
    beside(rename, |catalog, lookup_hint| {
        let (new, old) = (along(catalog, lookup_hint, "x"), find(catalog, "c"));
        assert!(new.is_none() || old.is_none(), "both");
    });
}

#[test]
fn a_name_that_is_replaced_leads_on_only_when_the_other_is_gone() {
    beside(
        |writer| assert!(writer.rename_over(b"d", b"c").is_some()),
        |catalog, lookup_hint| {
            let (target, source) = (
                along(catalog, lookup_hint, "c"),
                along(catalog, lookup_hint, "d"),
            );
            match target {
                Some(40) => assert_eq!(source, None, "it is under both names"),
                value => assert_eq!(value, Some(30)),
            }
        },
    );
}
