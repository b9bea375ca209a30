//! Walking a catalog in order.

use super::item::Item;
use super::slot::Slot;

/// The names of a catalog in ascending order, from some order on.
///
/// A name that is there throughout comes exactly once. One that is added or removed meanwhile may
/// come or not; one that is renamed comes once, under either key.
#[derive(Clone)]
pub struct Items<'g> {
    slots: &'g [Slot],
    next: usize,
    after: u64,
}

impl<'g> Items<'g> {
    pub(super) fn none() -> Self {
        Self::new(&[], 0, 0)
    }

    /// From this slot on, as far as orders are greater than `after`.
    pub(super) fn new(slots: &'g [Slot], next: usize, after: u64) -> Self {
        Self { slots, next, after }
    }
}

impl<'g> Iterator for Items<'g> {
    type Item = Item<'g>;

    #[inline]
    fn next(&mut self) -> Option<Item<'g>> {
        loop {
            let slot = self.slots.get(self.next)?;
            self.next += 1;
            if let Some(item) = slot.load().as_item()
                && item.order() > self.after
            {
                self.after = item.order();
                return Some(item);
            }
        }
    }
}

impl std::fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Items")
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}
