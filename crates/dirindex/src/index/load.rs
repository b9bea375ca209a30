//! Making room for many names.
//!
//! Names added one by one let table and row grow again and again. A caller that knows the number of
//! names has room made for all of them first.
//!
//! *Locking.* All of this under the index's lock.
#![expect(unsafe_code, reason = "readers may look at all that is replaced here")]

use super::body::{Form, View};
use super::grow;
use super::item::Item;
use super::reshape::{filled_row, retire_form};
use super::row::{self, NAMES_MAX};
use super::writer::DirIndexWriter;

impl DirIndexWriter<'_> {
    /// Makes room for `names` names in all. Room that is not used is given back by
    /// [`shrink`](Self::shrink).
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
        let old = self.index.body.load();
        let head = grow::build(row, grow::dense(names), items.into_iter());
        self.index.body.store(Form::Big(head));
        // SAFETY: the body leads to the new form, which has the names.
        unsafe { retire_form(old) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch;
    use crate::index::{DirIndex, InsertError};
    use crate::primitive::MODEL;

    fn insert_all(index: &DirIndex, names: &[(String, u64)]) -> Result<(), InsertError> {
        let mut writer = index.lock();
        names.iter().try_for_each(|(key, order)| {
            writer.insert(key.as_bytes(), *order, order + 7, (order % 13) as u8)
        })
    }

    fn numbered(numbers: std::ops::Range<u64>) -> Vec<(String, u64)> {
        numbers
            .map(|number| (format!("name-{number}"), number))
            .collect()
    }

    #[test]
    fn names_that_come_together_are_there_as_those_that_come_one_by_one() {
        if MODEL {
            // Too many steps for a model.
            return;
        }
        for reserved in [0, 5, 100, 4000, 20_000] {
            let index = DirIndex::new();
            index.lock().reserve(reserved);
            assert!(index.is_empty());
            for (from, to) in [(1, 4), (4, 40), (40, 41), (41, 5000)] {
                insert_all(&index, &numbered(from..to)).unwrap();
                index.lock().reserve(reserved / 2 + 300);
            }
            let guard = epoch::pin();
            for (key, order) in numbered(1..5000) {
                let item = index.get(key.as_bytes(), &guard).unwrap();
                assert_eq!(item.order(), order);
                assert_eq!(item.payload(), (order + 7, (order % 13) as u8));
            }
            let orders = index.after(0, &guard).map(Item::order);
            assert!(orders.eq(1..5000), "reserved {reserved}");
            assert_eq!(index.len(&guard), 4999);
        }
    }

    #[test]
    fn room_is_made_for_what_is_there_too() {
        if MODEL {
            return;
        }
        let index = DirIndex::new();
        insert_all(&index, &numbered(1..1000)).unwrap();
        for number in (1..1000).filter(|number| number % 3 != 0) {
            let gone = format!("name-{number}");
            assert!(index.lock().remove(gone.as_bytes()).is_some());
        }
        index.lock().reserve(10_000);
        let guard = epoch::pin();
        let orders = index.after(0, &guard).map(Item::order);
        assert!(orders.eq((1..1000).filter(|number| number % 3 == 0)));
        let mut writer = index.lock();
        assert_eq!(
            writer.insert(b"again", 999, 1, 0),
            Err(InsertError::OutOfOrder)
        );
        writer.insert(b"again", 1000, 1, 0).unwrap();
        writer.shrink();
        assert_eq!((writer.len(), writer.last_order()), (334, 1000));
    }
}
