//! A name that is made is looked for first: what that search has found out need not be found out again.
//!
//! *Invariant.* A writer that has a vacancy knows that the big form has no name with this key: it was sought
//! under the lock, and whatever may add a name forgets the vacancy.

use super::body::View;
use super::item::Item;
use super::writer::CatalogWriter;
use std::ptr;

/// A key that was sought in vain.
pub(super) struct Vacancy<'a> {
    key: &'a [u8],
    hash: u64,
}

impl<'a> CatalogWriter<'a> {
    /// As [`get`](Self::get), for a key that is [inserted](Self::insert) next unless it is there: then it is not
    /// looked for again.
    #[inline]
    #[must_use]
    pub fn seek(&mut self, key: &'a [u8]) -> Option<Item<'_>> {
        self.vacancy = None;
        let View::Big(table) = self.inside() else {
            return self.get(key);
        };
        let hash = table.hash(key);
        let found = table.find(hash, key);
        if found.is_none() {
            self.vacancy = Some(Vacancy { key, hash });
        }
        found.map(|(_, item)| item)
    }

    /// The hash of this key, if it was sought last, in vain; that is forgotten.
    #[inline]
    pub(super) fn take_vacancy(&mut self, key: &[u8]) -> Option<u64> {
        let vacancy = self.vacancy.take()?;
        // By its address: the bytes there cannot have changed, they are lent since.
        ptr::eq(vacancy.key, key).then_some(vacancy.hash)
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
}
