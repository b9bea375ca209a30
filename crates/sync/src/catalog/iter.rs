//! Walking a catalog in order.

use super::item::Item;
use super::row::position_after;
use super::slot::Slot;

/// The names of a catalog in ascending order, from some order on.
///
/// A name that is there throughout comes exactly once. One that is added or removed meanwhile may
/// come or not; one that is renamed comes once, under either key.
#[derive(Clone)]
pub struct Items<'g> {
    first: Cursor<'g>,
    /// Of the other lanes; mostly there are none.
    more: Vec<Cursor<'g>>,
    after: u64,
}

/// A place in one row.
#[derive(Clone)]
pub(super) struct Cursor<'g> {
    slots: &'g [Slot],
    next: usize,
    /// What comes next, if that has been looked up.
    ahead: Option<Item<'g>>,
}

impl<'g> Cursor<'g> {
    pub(super) fn none() -> Self {
        Self::behind(&[], 0)
    }

    /// In front of the first slot whose order is greater than `after`.
    pub(super) fn behind(slots: &'g [Slot], after: u64) -> Self {
        Self {
            slots,
            next: position_after(slots, after),
            ahead: None,
        }
    }

    /// The next item of an order greater than `after`.
    #[inline]
    fn step(&mut self, after: u64) -> Option<Item<'g>> {
        loop {
            let word = self.slots.get(self.next)?.load();
            if word.is_free() {
                return None;
            }
            self.next += 1;
            if let Some(item) = word.as_item()
                && item.order() > after
            {
                return Some(item);
            }
        }
    }

    /// The order of what comes next.
    fn look(&mut self, after: u64) -> Option<u64> {
        if self.ahead.is_none() {
            self.ahead = self.step(after);
        }
        self.ahead.map(Item::order)
    }
}

impl<'g> Items<'g> {
    pub(super) fn none() -> Self {
        Self::new(Cursor::none(), 0)
    }

    /// From this place on, as far as orders are greater than `after`.
    pub(super) fn new(first: Cursor<'g>, after: u64) -> Self {
        Self {
            first,
            more: Vec::new(),
            after,
        }
    }

    /// With the names of another row between them.
    pub(super) fn and(mut self, cursor: Cursor<'g>) -> Self {
        self.more.push(cursor);
        self
    }

    fn merged(&mut self) -> Option<Item<'g>> {
        let after = self.after;
        let (_, next) = std::iter::once(&mut self.first)
            .chain(&mut self.more)
            .filter_map(|cursor| Some((cursor.look(after)?, cursor)))
            .min_by_key(|(order, _)| *order)?;
        next.ahead.take()
    }
}

impl<'g> Iterator for Items<'g> {
    type Item = Item<'g>;

    #[inline]
    fn next(&mut self) -> Option<Item<'g>> {
        let item = if self.more.is_empty() {
            self.first.step(self.after)?
        } else {
            self.merged()?
        };
        self.after = item.order();
        Some(item)
    }
}

impl std::fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Items")
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}
