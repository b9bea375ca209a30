//! A name that is made or removed is looked for first: what that search has found out need not be found out again.
//!
//! *Invariant.* What a writer remembers of a key is so in the big form: it was sought under the lock, and whatever may
//! add, move or take out a name forgets it.

use super::body::View;
use super::item::Item;
use super::slot::Slot;
use super::writer::CatalogWriter;
use std::ptr;

/// The last key that was sought, and what was found.
#[derive(Clone, Copy)]
pub(super) struct Sought<'a> {
    /// Lent since: by its address it is known, because the bytes there cannot have changed.
    key: &'a [u8],
    hash: u64,
    found: Option<(&'a Slot, Item<'a>)>,
}

impl<'a> CatalogWriter<'a> {
    /// As [`get`](Self::get), for a key that is [inserted](Self::insert) next unless it is there, or
    /// [removed](Self::remove) if it is: then it is not looked for again.
    #[inline]
    #[must_use]
    pub fn seek(&mut self, key: &'a [u8]) -> Option<Item<'_>> {
        self.sought = None;
        let View::Big(table) = self.inside() else {
            return self.get(key);
        };
        let hash = table.hash(key);
        let found = table.find(hash, key);
        self.sought = Some(Sought { key, hash, found });
        found.map(|(_, item)| item)
    }

    /// The hash of this key, if it was sought last, in vain; that is forgotten.
    #[inline]
    pub(super) fn take_missing(&mut self, key: &[u8]) -> Option<u64> {
        let sought = self.sought.take()?;
        (ptr::eq(sought.key, key) && sought.found.is_none()).then_some(sought.hash)
    }

    /// Where this key is, if it was sought last, and found; that is forgotten.
    #[inline]
    pub(super) fn take_found(&mut self, key: &[u8]) -> Option<(&'a Slot, Item<'a>)> {
        let sought = self.sought.take()?;
        sought.found.filter(|_| ptr::eq(sought.key, key))
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog_primitive::MODEL;
    use crate::{Catalog, catalog::InsertError};

    #[test]
    fn a_name_that_was_sought_is_made_once() {
        if MODEL {
            // One thread, and more names than it has room for.
            return;
        }
        let names: Vec<Vec<u8>> = (0..400)
            .map(|number| format!("name-{number}").into())
            .collect();
        let catalog = Catalog::new();
        let mut writer = catalog.lock();
        for (order, pair) in (1..).step_by(2).zip(names.chunks(2)) {
            let [one, other] = pair else {
                unreachable!("an even number")
            };
            assert!(writer.seek(one).is_none());
            assert_eq!(writer.insert(one, order, order, 1), Ok(()));
            let again = writer.insert(one, order + 1, 9, 1);
            assert_eq!(again, Err(InsertError::Taken));
            // Somebody else's name, made by what was known of this one.
            assert!(writer.seek(other).is_none());
            assert_eq!(writer.rename(one, other), Some(order));
            let taken = writer.insert(other, order + 1, 9, 1);
            assert_eq!(taken, Err(InsertError::Taken));
            assert!(writer.seek(one).is_none());
            assert!(writer.seek(other).is_some());
            assert_eq!(writer.insert(one, order + 1, order + 1, 1), Ok(()));
        }
        assert_eq!(writer.len(), 400);
        drop(writer);
        let guard = crate::epoch::pin();
        for name in &names {
            assert!(catalog.get(name, &guard).is_some());
        }
        assert_eq!(catalog.after(0, &guard).count(), 400);
    }

    #[test]
    fn what_was_known_before_a_name_came_is_forgotten() {
        if MODEL {
            return;
        }
        let catalog = Catalog::new();
        for order in 1..=100_u64 {
            let name = order.to_le_bytes();
            catalog.lock().insert(&name, order, order, 1).unwrap();
        }
        let mut writer = catalog.lock();
        assert!(writer.seek(b"one").is_none());
        writer.insert(b"other", 101, 1, 1).unwrap();
        writer.insert(b"one", 102, 1, 1).unwrap();
        assert!(writer.seek(b"third").is_none());
        writer.adopt(Catalog::new());
        writer.insert(b"third", 103, 1, 1).unwrap();
        let third = writer.insert(b"third", 104, 1, 1);
        assert_eq!(third, Err(InsertError::Taken));
    }

    #[test]
    fn a_name_that_was_found_goes_once() {
        if MODEL {
            return;
        }
        let names: Vec<Vec<u8>> = (0..600)
            .map(|number| format!("name-{number}").into())
            .collect();
        let catalog = Catalog::new();
        let mut writer = catalog.lock();
        let mut orders = 1_u64..;
        let mut order = || orders.next().unwrap();
        for name in &names[..300] {
            writer.insert(name, order(), 1, 1).unwrap();
        }
        for (pair, new) in names[..300].chunks(2).zip(&names[300..]) {
            let [one, other] = pair else {
                unreachable!("an even number")
            };
            let is = writer.seek(one).unwrap().order();
            // Somebody else's name, by what was known of this one.
            let removed = writer.remove(other).unwrap();
            assert_eq!(removed.order, is + 1);
            // Names move when others come.
            assert!(writer.seek(one).is_some());
            writer.insert(new, order(), 1, 1).unwrap();
            assert_eq!(writer.remove(one).map(|gone| gone.order), Some(is));
            assert!(writer.remove(one).is_none());
            assert!(writer.seek(one).is_none());
            // A name that is there by now, of one that was sought in vain.
            writer.insert(one, order(), 1, 1).unwrap();
            assert!(writer.seek(one).is_some());
            assert!(writer.rename(one, other).is_some());
            assert!(writer.remove(one).is_none());
            assert!(writer.seek(other).is_some());
            assert!(writer.remove(other).is_some());
            assert!(writer.remove(other).is_none());
        }
        assert_eq!(writer.len(), 150);
        for name in &names[300..450] {
            assert!(writer.seek(name).is_some());
            assert!(writer.remove(name).is_some());
        }
        assert!(writer.is_empty());
    }
}
