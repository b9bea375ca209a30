//! Listing an index in order.

use super::item::Item;
use super::row::position::position_after;
use super::slot::Slot;

/// The names of an index in ascending order, from some order on.
///
/// A name that exists throughout is returned exactly once. One that is added or removed meanwhile
/// may be returned or not; a renamed one is returned once, under either key.
#[derive(Clone)]
pub struct Items<'g> {
    slots: &'g [Slot],
    next: usize,
    after: u64,
}

impl<'g> Items<'g> {
    pub(super) fn none() -> Self {
        Self::behind(&[], 0)
    }

    /// The names in these slots with orders greater than `after`.
    pub(super) fn behind(slots: &'g [Slot], after: u64) -> Self {
        Self {
            slots,
            next: position_after(slots, after),
            after,
        }
    }
}

impl<'g> Iterator for Items<'g> {
    type Item = Item<'g>;

    #[inline]
    fn next(&mut self) -> Option<Item<'g>> {
        loop {
            let word = self.slots.get(self.next)?.load();
            self.next += 1;
            if let Some(item) = word.as_item()
                && item.order() > self.after
            {
                self.after = item.order();
                return Some(item);
            }
        }
    }
}
