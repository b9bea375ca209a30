//! Rows of lanes.
//!
//! One thread appends, the one that holds the lane; any thread takes out the names that it has
//! claimed, each by one store into the slot where the name is. Who does this reads nothing that the
//! appending thread writes, other slots apart.
//!
//! *Invariants.* The first null slot ends the row. Only a change under the catalog's whole lock
//! moves names, to another row.
#![expect(unsafe_code, reason = "a slot whose position is known to be good")]

use super::memory::capacity;
use super::{Row, short_tag};
use crate::catalog::item::Item;
use crate::catalog::iter::Cursor;
use crate::catalog::slot::{Slot, Word};

impl<'g> Row<'g> {
    /// Slots that there are.
    pub(in crate::catalog) fn capacity(self) -> usize {
        capacity(self.state().class)
    }

    /// From the first name on whose order is greater than `after`.
    pub(in crate::catalog) fn cursor(self, after: u64) -> Cursor<'g> {
        Cursor::behind(self.whole(), after)
    }

    /// All items, in order.
    pub(in crate::catalog) fn all(self) -> impl Iterator<Item = Item<'g>> + Clone {
        let words = self.whole().iter().map(Slot::load);
        words
            .take_while(|word| !word.is_free())
            .filter_map(Word::as_item)
    }

    /// Adds a name in the first slot that is not in use, which is this. It is the lane's greatest.
    pub(in crate::catalog) fn append(self, position: usize, item: Item<'g>, lane: usize) {
        item.set_place(lane, position);
        self.whole()[position].store(Word::item(item, short_tag(item.key())));
    }

    /// Fills this empty row, which is long enough, with the names of one that had the same place. What keeps its
    /// position is moved without a look at the name itself: mostly there is no gap. Returns how many they are.
    pub(in crate::catalog) fn take_over(self, old: Row<'g>, lane: usize) -> usize {
        let (from, to) = (old.whole(), self.whole());
        let mut position = 0;
        // Up to the first gap.
        for (from, to) in from.iter().zip(to) {
            let word = from.load();
            if !word.is_item() {
                break;
            }
            to.store(word);
            position += 1;
        }
        let behind = from[position..].iter().map(Slot::load);
        let items = behind
            .take_while(|word| !word.is_free())
            .filter_map(Word::as_item);
        for item in items {
            self.append(position, item, lane);
            position += 1;
        }
        position
    }

    /// Number of names.
    pub(in crate::catalog) fn count(self) -> usize {
        let words = self.whole().iter().map(Slot::load);
        words
            .take_while(|word| !word.is_free())
            .filter(|word| word.is_item())
            .count()
    }

    fn slot_of(self, item: Item<'g>) -> (usize, &'g Slot) {
        let (_, position) = item.place();
        // SAFETY: the item is in this row, hence its position is below the capacity. (To ask for
        // that would be to read the state.)
        let slot = unsafe { self.first.add(position) };
        // SAFETY: initialised with the row, and live by `from_raw`.
        (position, unsafe { slot.as_ref() })
    }

    /// Lets searches along the row leave this name alone: it is about to go, or to lead elsewhere
    /// together with another. The name is claimed.
    pub(in crate::catalog) fn mark(self, item: Item<'g>) {
        // Stored without a look: whoever removes a name has nothing else to wait for here. Nobody asks
        // for the tag of a marked word.
        self.slot_of(item).1.store(Word::item(item, 0).marked());
    }

    /// The change that it was [marked](Self::mark) for is over, and it is still there.
    pub(in crate::catalog) fn unmark(self, item: Item<'g>) {
        let word = Word::item(item, short_tag(item.key()));
        self.slot_of(item).1.store(word);
    }

    /// Puts an item in the place of one with the same order. The name is claimed.
    pub(in crate::catalog) fn swap(self, old: Item<'g>, new: Item<'g>) {
        debug_assert_eq!(old.order(), new.order());
        let (lane, position) = old.place();
        new.set_place(lane, position);
        self.slot_of(old)
            .1
            .store(Word::item(new, short_tag(new.key())));
    }

    /// Takes a name out that is claimed.
    pub(in crate::catalog) fn vacate(self, item: Item<'g>) {
        let (position, slot) = self.slot_of(item);
        // SAFETY: every row has a first slot; live by `from_raw`.
        let front = unsafe { self.first.as_ref() };
        // Of slot 0 as in `first_position`.
        let first = front.load().as_number().unwrap_or(0) as usize;
        let is_first = position == first;
        if position > 0 {
            slot.store(Word::number(item.order()));
        }
        if is_first {
            // Only whoever takes out the first name comes here, so that nobody else stores now.
            let words = self.whole().iter().skip(position + 1).map(Slot::load);
            let gaps = words.take_while(|word| word.as_number().is_some());
            front.store(Word::number((position + 1 + gaps.count()) as u64));
        }
    }
}
