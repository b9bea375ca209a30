//! Searches in the order of the listing: whoever was told the names asks for each of them.
//!
//! `ls -l`, `find`, `rm -r`, a backup: they list a directory and then call by name, in that order. A search
//! by hash meets a line of the table that no cache holds, because neighbours in the listing are none
//! there. The slot behind that of the last name is mostly in a cache already, and says by its tag whether this is the
//! name that is asked for.
//!
//! *Invariants.* A slot of a row is marked before its name leaves the table, or leads elsewhere together with
//! another name, and has the mark until that is over. So what an unmarked slot leads to can be found
//! in the table at that moment, as it is: a search that ends here ends no otherwise than by hash.
//!
//! *Locking.* As all searches: a guard. A trail belongs to one thread.

use super::Catalog;
use super::body::View;
use super::item::Item;
use super::row::Row;
use super::table::Table;
use crate::epoch::Guard;
use std::cell::Cell;

/// Gaps between two names of a listing that are passed over.
const GAPS: usize = 4;
/// Slots behind a name that is removed in which the next two are looked for.
const AHEAD: usize = 3;

/// Where a thread's last search in a catalog ended.
///
/// It may be used for any catalog at any time: what it says is tried, never trusted.
#[derive(Debug, Default)]
pub struct LookupHint {
    /// The address of the row, where another may be by now.
    row: Cell<usize>,
    position: Cell<u32>,
    /// The last search ended right behind the one before.
    follows: Cell<bool>,
}

impl LookupHint {
    /// One that leads nowhere yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            row: Cell::new(0),
            position: Cell::new(0),
            follows: Cell::new(false),
        }
    }

    /// The item behind the last one, if it has this key.
    #[inline]
    fn next<'g>(&self, table: Table<'g>, key: &[u8]) -> Option<Item<'g>> {
        if !self.follows.get() {
            return None;
        }
        let row = table.row();
        if self.row.get() != row.address() {
            return None;
        }
        let (position, item) = behind(row, self.position.get(), key)?;
        self.position.set(position);
        Some(item)
    }

    /// A search by hash ended here.
    #[inline]
    fn note(&self, table: Table<'_>, item: Item<'_>) {
        // A writer may change it now: then the next search is no faster.
        let position = item.position() as u32;
        let row = table.row().address();
        let step = position.wrapping_sub(self.position.get());
        // Asked for once more, it says nothing new: who removes a name has often looked at it before.
        let follows = if step == 0 {
            self.follows.get()
        } else {
            step <= GAPS as u32 + 1
        };
        self.follows.set(self.row.get() == row && follows);
        self.row.set(row);
        self.position.set(position);
    }
}

/// The next item of a row behind this position, if it has this key and nobody is about to change it.
#[inline]
fn behind<'g>(row: Row<'g>, position: u32, key: &[u8]) -> Option<(u32, Item<'g>)> {
    let slots = row.behind(position as usize);
    for (step, slot) in (1..).zip(slots.iter().take(GAPS + 1)) {
        let word = slot.load();
        if word.as_number().is_some() {
            continue;
        }
        let item = (!word.is_marked() && row.may_be(word, key)).then(|| word.as_item())??;
        return item.has_key(key).then_some((position + step, item));
    }
    None
}

impl Catalog {
    /// As [`get`](Self::get), for who asks for many: names that are asked for in the order of the
    /// listing are found without a look into the table.
    #[inline]
    #[must_use]
    pub fn get_along<'g>(
        &'g self,
        key: &[u8],
        lookup_hint: &LookupHint,
        guard: &'g Guard,
    ) -> Option<Item<'g>> {
        let View::Big(table) = self.view(guard) else {
            return self.get(key, guard);
        };
        if let Some(item) = lookup_hint.next(table, key) {
            return Some(item);
        }
        let item = table.get(key)?;
        lookup_hint.note(table, item);
        Some(item)
    }
}

impl Catalog {
    /// This name was asked for, to be removed. If such names come in the order of the listing, what the next
    /// removal will look at first is fetched.
    #[inline]
    pub fn foresee(&self, item: Item<'_>, lookup_hint: &LookupHint, guard: &Guard) {
        let View::Big(table) = self.view(guard) else {
            return;
        };
        lookup_hint.note(table, item);
        if !lookup_hint.follows.get() {
            return;
        }
        let slots = table
            .row()
            .behind(lookup_hint.position.get() as usize)
            .iter();
        let mut items = slots.take(AHEAD).filter_map(|slot| slot.load().as_item());
        if let Some(next) = items.next() {
            table.home(next.key()).fetch();
        }
        // Its key is asked for at the next removal.
        if let Some(later) = items.next() {
            later.fetch();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog_primitive::MODEL;
    use crate::epoch;

    fn name(number: u64) -> Vec<u8> {
        format!("name-{number:04}").into_bytes()
    }

    fn filled(names: u64) -> Catalog {
        let catalog = Catalog::new();
        for number in 1..=names {
            let added = catalog
                .lock()
                .insert(&name(number), number, 1000 + number, 1);
            added.expect("a new name");
        }
        catalog
    }

    /// Does the trail alone lead to this name?
    fn leads_to(catalog: &Catalog, lookup_hint: &LookupHint, number: u64) -> bool {
        let guard = epoch::pin();
        let View::Big(table) = catalog.view(&guard) else {
            panic!("a catalog of so many names is big");
        };
        let found = lookup_hint.next(table, &name(number));
        found.is_some_and(|item| item.value() == 1000 + number)
    }

    fn ask(catalog: &Catalog, lookup_hint: &LookupHint, number: u64) -> Option<u64> {
        let guard = epoch::pin();
        let found = catalog.get_along(&name(number), lookup_hint, &guard);
        assert_eq!(
            found.map(|item| item.value()),
            catalog.get(&name(number), &guard).map(|item| item.value())
        );
        found.map(|item| item.value())
    }

    #[test]
    fn who_asks_in_the_order_of_the_listing_is_led_by_the_row() {
        if MODEL {
            // Too many names for it; its own scenarios are in `lookup_hints.rs` there.
            return;
        }
        let (catalog, lookup_hint) = (filled(100), LookupHint::new());
        assert!(!leads_to(&catalog, &lookup_hint, 1), "nothing is known yet");
        assert_eq!(ask(&catalog, &lookup_hint, 7), Some(1007));
        assert!(
            !leads_to(&catalog, &lookup_hint, 8),
            "one search is no order"
        );
        assert_eq!(ask(&catalog, &lookup_hint, 8), Some(1008));
        assert!(leads_to(&catalog, &lookup_hint, 9));
        assert_eq!(ask(&catalog, &lookup_hint, 9), Some(1009), "once more");
        for number in 10..=100 {
            assert!(leads_to(&catalog, &lookup_hint, number));
        }
        assert!(!leads_to(&catalog, &lookup_hint, 101), "the row ends");
        assert_eq!(ask(&catalog, &lookup_hint, 101), None);
        assert_eq!(ask(&catalog, &lookup_hint, 50), Some(1050));
        assert!(!leads_to(&catalog, &lookup_hint, 51), "it went elsewhere");
    }

    #[test]
    fn removals_in_the_order_of_the_listing_lead_on() {
        if MODEL {
            return;
        }
        let (catalog, lookup_hint) = (filled(100), LookupHint::new());
        for number in 1..=50 {
            let key = name(number);
            let mut writer = catalog.lock();
            let guard = epoch::pin();
            catalog.foresee(writer.get(&key).expect("there"), &lookup_hint, &guard);
            drop(guard);
            assert!(writer.remove(&key).is_some());
            drop(writer);
            assert_eq!(lookup_hint.follows.get(), number > 1);
            assert!(leads_to(&catalog, &lookup_hint, number + 1) == (number > 1));
        }
    }

    #[test]
    fn gaps_are_passed_and_changes_are_seen() {
        if MODEL {
            // Too many names for it; its own scenarios are in `lookup_hints.rs` there.
            return;
        }
        let (catalog, lookup_hint) = (filled(100), LookupHint::new());
        for number in [1, 2] {
            assert!(ask(&catalog, &lookup_hint, number).is_some());
        }
        for number in [3, 4, 6] {
            assert!(catalog.lock().remove(&name(number)).is_some());
        }
        assert_eq!(ask(&catalog, &lookup_hint, 3), None);
        assert!(leads_to(&catalog, &lookup_hint, 5));
        assert!(leads_to(&catalog, &lookup_hint, 7));
        assert!(catalog.lock().exchange(&name(8), &name(20)));
        assert_eq!(ask(&catalog, &lookup_hint, 8), Some(1020));
        assert!(catalog.lock().rename(&name(9), b"other").is_some());
        assert_eq!(ask(&catalog, &lookup_hint, 9), None);
        assert_eq!(ask(&catalog, &lookup_hint, 10), Some(1010));
        assert!(catalog.lock().remove(b"other").is_some());
        assert!(catalog.lock().rename_over(&name(12), &name(11)).is_some());
        assert_eq!(ask(&catalog, &lookup_hint, 11), Some(1012));
        assert_eq!(ask(&catalog, &lookup_hint, 12), None);
        assert_eq!(ask(&catalog, &lookup_hint, 13), Some(1013));
        assert!(leads_to(&catalog, &lookup_hint, 14));
    }

    #[test]
    fn a_trail_of_another_catalog_or_of_rows_that_are_gone_misleads_nobody() {
        if MODEL {
            // Too many names for it; its own scenarios are in `lookup_hints.rs` there.
            return;
        }
        let lookup_hint = LookupHint::new();
        for names in [40, 100, 60] {
            let catalog = filled(names);
            for number in 1..=names + 1 {
                let expected = (number <= names).then_some(1000 + number);
                assert_eq!(ask(&catalog, &lookup_hint, number), expected);
            }
            for number in 1..=names - 5 {
                assert!(catalog.lock().remove(&name(number)).is_some());
            }
            assert_eq!(ask(&catalog, &lookup_hint, names), Some(1000 + names));
        }
    }
}
