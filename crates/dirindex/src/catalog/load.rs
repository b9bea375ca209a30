//! Filling a catalog with many names at once.
//!
//! Names that come one by one wait each for the bucket they go to, and let table and row grow again
//! and again. Those that come together have their buckets fetched while the ones before them go in,
//! and who knows how many they will be has room made for all of them first.
//!
//! *Locking.* All of this under the catalog's whole lock.
#![expect(unsafe_code, reason = "readers may look at all that is replaced here")]

use super::body::{Form, View};
use super::growth;
use super::item::Item;
use super::outcome::InsertError;
use super::reshape::{filled_row, retire_form};
use super::row::{self, NAMES_MAX};
use super::writer::CatalogWriter;

/// Names whose buckets are fetched together.
const TOGETHER: usize = 16;

/// A name that is to be inserted: see [`CatalogWriter::insert`].
#[derive(Clone, Copy, Debug)]
pub struct NewName<'k> {
    /// Its bytes.
    pub key: &'k [u8],
    /// Its place in the listing.
    pub order: u64,
    /// What it leads to.
    pub value: u64,
    /// Of what kind that is.
    pub tag: u8,
}

impl CatalogWriter<'_> {
    /// Adds names in the order given, as [`insert`](Self::insert) does with each.
    ///
    /// # Errors
    /// The first one's; names before it were added then.
    pub fn insert_all<'k>(
        &mut self,
        names: impl IntoIterator<Item = NewName<'k>>,
    ) -> Result<(), InsertError> {
        let mut names = names.into_iter();
        let mut some = [None; TOGETHER];
        loop {
            let mut count = 0;
            for (place, name) in some.iter_mut().zip(names.by_ref()) {
                let hash = self.announce(name.key);
                *place = Some((name, hash));
                count += 1;
            }
            for (name, hash) in some.iter().take(count).flatten() {
                self.insert_hashed(*name, *hash, false)?;
            }
            if count < TOGETHER {
                return Ok(());
            }
        }
    }

    /// Has the place of a name fetched, if that can be told already; its hash.
    fn announce(&self, key: &[u8]) -> Option<u64> {
        match self.inside() {
            View::Big(table) => {
                let hash = table.hash(key);
                table.segment(hash).1.bucket(hash, 0).fetch();
                Some(hash)
            }
            View::Empty { .. } | View::Small(_) => None,
        }
    }

    /// Makes room for so many names in all, if they are more than there is room for. Room
    /// that is not used after all is given back by [`shrink`](Self::shrink).
    pub fn reserve(&mut self, names: usize) {
        let names = names.min(NAMES_MAX);
        let class = row::class_for(names);
        if row::is_small(class) {
            return;
        }
        let view = self.inside();
        if let View::Big(table) = view
            && table.has_room_for(names)
        {
            return;
        }
        let items = view.after(0).collect::<Vec<Item<'_>>>();
        let row = filled_row(class, view.last_order(), items.iter().copied());
        let old = self.catalog.body.load();
        let head = growth::build(row, growth::dense(names), items.into_iter());
        self.catalog.body.store(Form::Big(head));
        // SAFETY: the body leads to the new form, which has the names.
        unsafe { retire_form(old) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::catalog_primitive::MODEL;
    use crate::epoch;

    fn insert_all(catalog: &Catalog, names: &[(String, u64)]) -> Result<(), InsertError> {
        let new = names.iter().map(|(key, order)| NewName {
            key: key.as_bytes(),
            order: *order,
            value: order + 7,
            tag: (order % 13) as u8,
        });
        catalog.lock().insert_all(new)
    }

    fn numbered(numbers: std::ops::Range<u64>) -> Vec<(String, u64)> {
        numbers
            .map(|number| (format!("name-{number}"), number))
            .collect()
    }

    #[test]
    fn names_that_come_together_are_there_as_those_that_come_one_by_one() {
        if MODEL {
            // Too many steps.
            return;
        }
        for reserved in [0, 5, 100, 4000, 20_000] {
            let catalog = Catalog::new();
            catalog.lock().reserve(reserved);
            assert!(catalog.is_empty());
            for (from, to) in [(1, 4), (4, 40), (40, 41), (41, 5000)] {
                insert_all(&catalog, &numbered(from..to)).unwrap();
                catalog.lock().reserve(reserved / 2 + 300);
            }
            let guard = epoch::pin();
            for (key, order) in numbered(1..5000) {
                let item = catalog.get(key.as_bytes(), &guard).unwrap();
                assert_eq!(item.order(), order);
                assert_eq!(item.payload(), (order + 7, (order % 13) as u8));
            }
            let orders = catalog.after(0, &guard).map(Item::order);
            assert!(orders.eq(1..5000), "reserved {reserved}");
            assert_eq!(catalog.len(&guard), 4999);
        }
    }

    #[test]
    fn room_is_made_for_what_is_there_too() {
        if MODEL {
            return;
        }
        let catalog = Catalog::new();
        insert_all(&catalog, &numbered(1..1000)).unwrap();
        for number in (1..1000).filter(|number| number % 3 != 0) {
            let gone = format!("name-{number}");
            assert!(catalog.lock().remove(gone.as_bytes()).is_some());
        }
        catalog.lock().reserve(10_000);
        let guard = epoch::pin();
        let orders = catalog.after(0, &guard).map(Item::order);
        assert!(orders.eq((1..1000).filter(|number| number % 3 == 0)));
        let mut writer = catalog.lock();
        assert_eq!(
            writer.insert(b"again", 999, 1, 0),
            Err(InsertError::OutOfOrder)
        );
        writer.insert(b"again", 1000, 1, 0).unwrap();
        writer.shrink();
        assert_eq!((writer.len(), writer.last_order()), (334, 1000));
    }

    #[test]
    fn the_first_name_that_cannot_be_there_ends_it() {
        if MODEL {
            return;
        }
        let catalog = Catalog::new();
        let mut names = numbered(1..50);
        names[40].0 = "name-7".into();
        assert_eq!(insert_all(&catalog, &names), Err(InsertError::Taken));
        assert_eq!(catalog.len(&epoch::pin()), 40);
        let order = [("a".to_owned(), 60), ("b".to_owned(), 60)];
        assert_eq!(insert_all(&catalog, &order), Err(InsertError::OutOfOrder));
    }
}
