//! Names in ascending order: the small form is one row, and the big form a row and a table.
//!
//! A row is a word of state and slots. Names are appended. A removed name leaves its order behind
//! as a gap, so that a listing finds its position by binary search. When gaps or unused slots
//! outnumber the names, the names move to a new row.
//!
//! *Invariants.* The slots in use are never null. Their orders ascend, and an item put into a slot
//! always has a greater order than every item ever put into a slot before it. So a reader that sees
//! a shorter row still finds what is there throughout. If slot 0 is a gap, it holds the position of
//! the first item instead, so the gaps before that are skipped. At most one gap is at the end, and
//! it holds the greatest order ever.
//!
//! *Locking.* A row is changed under the index's lock, and read under a guard.
#![expect(unsafe_code, reason = "a header with slots behind it")]

mod memory;
pub(super) mod position;

pub(super) use memory::{NAMES_MAX, RowHead, allocate, class_for, is_small};

use super::item::Item;
use super::iter::Items;
use super::slot::{Slot, Word};
use crate::epoch;
use crate::primitive::{MODEL, Ordering, dealloc};
use memory::{State, layout};
use position::{first_position, order};
use std::ptr::NonNull;

/// So many gaps are never a reason to close them.
const GAPS_FREE: usize = 4;

/// A row to read, or to change by the holder of the lock.
#[derive(Clone, Copy)]
pub(super) struct Row<'g> {
    head: &'g RowHead,
    first: NonNull<Slot>,
}

impl<'g> Row<'g> {
    /// The row at this address.
    ///
    /// # Safety
    /// `head` comes from [`allocate`]; neither it nor an item found in it is freed during `'g`.
    #[inline]
    pub(super) unsafe fn from_raw(head: NonNull<RowHead>) -> Self {
        Self {
            // SAFETY: `head` is live by the caller's promise.
            head: unsafe { head.as_ref() },
            // SAFETY: the slots follow the header within the allocation.
            first: unsafe { head.add(1) }.cast(),
        }
    }

    #[inline]
    fn state(self) -> State {
        // Acquire pairs with the release in `set_state`: slots below the tail are filled.
        State::unpack(self.head.state.load(Ordering::Acquire))
    }

    fn set_state(self, state: State) {
        // Release: see `state`.
        self.head.state.store(state.pack(), Ordering::Release);
    }

    /// The slots in use.
    #[inline]
    pub(super) fn slots(self) -> &'g [Slot] {
        // SAFETY: at most as many as were allocated, as zeros, which are empty slots; live by
        // `from_raw`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.state().tail) }
    }

    /// All slots.
    #[inline]
    fn whole(self) -> &'g [Slot] {
        // SAFETY: as many as were allocated, as zeros, which are empty slots; live by `from_raw`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.capacity()) }
    }

    /// The number of slots.
    pub(super) fn capacity(self) -> usize {
        memory::capacity(self.state().class)
    }

    /// Number of names.
    pub(super) fn len(self) -> usize {
        let state = self.state();
        state.tail - state.gaps
    }

    /// The name with this key, by a linear search.
    #[inline]
    pub(super) fn find(self, key: &[u8]) -> Option<Item<'g>> {
        let tag = short_tag(key);
        for slot in self.slots() {
            let word = slot.load();
            if word.has_tag(tag)
                && let Some(item) = word.as_item()
                && item.has_key(key)
            {
                return Some(item);
            }
        }
        None
    }

    /// The greatest order of a name that is or was in the row.
    pub(super) fn last_order(self) -> u64 {
        self.slots().last().map_or(0, |slot| order(slot.load()))
    }

    /// The names with orders greater than `after`.
    pub(super) fn after(self, after: u64) -> Items<'g> {
        Items::behind(self.slots(), after)
    }

    /// All items, in order.
    pub(super) fn items(self) -> impl Iterator<Item = Item<'g>> + Clone {
        self.slots().iter().filter_map(|slot| slot.load().as_item())
    }

    /// Is there a gap at the end?
    fn has_gap_at_end(self) -> bool {
        let last = self.slots().last();
        last.is_some_and(|slot| slot.load().as_number().is_some())
    }

    /// Is there room for one more name?
    pub(super) fn has_room(self) -> bool {
        self.state().tail < self.capacity() || self.has_gap_at_end()
    }

    /// Appends a name, unless the row is full. Its order is greater than any before.
    pub(super) fn push(self, item: Item<'g>) -> bool {
        let mut state = self.state();
        let gap_at_end = self.has_gap_at_end();
        let position = state.tail - usize::from(gap_at_end);
        let Some(slot) = self.whole().get(position) else {
            return false;
        };
        item.set_position(position);
        slot.store(Word::item(item, short_tag(item.key())));
        if gap_at_end {
            state.gaps -= 1;
        } else {
            state.tail += 1;
        }
        self.set_state(state);
        true
    }

    /// Replaces an item by one with the same order.
    pub(super) fn substitute(self, old: Item<'g>, new: Item<'g>) {
        debug_assert_eq!(old.order(), new.order());
        let position = old.position();
        new.set_position(position);
        self.whole()[position].store(Word::item(new, short_tag(new.key())));
    }

    /// Removes a name that is not the only one.
    pub(super) fn remove(self, item: Item<'g>) {
        let mut state = self.state();
        debug_assert!(state.tail - state.gaps > 1);
        let position = item.position();
        let last_order = self.last_order();
        state.gaps += 1;
        let slots = self.whole();
        let is_gap = |at: usize| slots[at].load().as_number().is_some();
        let behind = state.tail - position - 1;
        // At most one gap is at the end.
        if behind == 0 || behind == 1 && is_gap(position + 1) {
            slots[position].store(Word::number(last_order));
            let mut end = position;
            // Another name is before it, so this ends before slot 0.
            while is_gap(end - 1) {
                end -= 1;
                slots[end].store(Word::number(last_order));
            }
            state.gaps -= state.tail - (end + 1);
            state.tail = end + 1;
        } else {
            let is_first = position == first_position(slots);
            if position > 0 {
                slots[position].store(Word::number(item.order()));
            }
            if is_first {
                // Slot 0 changes from the item to the position in one store: it never holds an
                // order.
                let first = (position + 1..state.tail).find(|&at| !is_gap(at));
                let first = first.unwrap_or(state.tail);
                slots[0].store(Word::number(first as u64));
            }
        }
        self.set_state(state);
    }

    /// Is it much too large for its names?
    pub(super) fn is_wasteful(self) -> bool {
        let state = self.state();
        let names = state.tail - state.gaps;
        state.gaps > names + GAPS_FREE || self.whole().len() > 4 * names + GAPS_FREE
    }

    /// Fills this empty row, which is long enough, with the names of another. Those before the
    /// first gap keep their positions, so they are copied without reading their items.
    pub(super) fn take_over(self, old: Row<'g>) {
        let mut state = self.state();
        for (from, to) in old.slots().iter().zip(self.whole()) {
            let word = from.load();
            if !word.is_item() {
                break;
            }
            to.store(word);
            state.tail += 1;
        }
        self.set_state(state);
        let behind = old.slots()[state.tail..].iter();
        let items = behind.filter_map(|slot| slot.load().as_item());
        self.fill(items, old.last_order());
    }

    /// Appends names, for which there is room, and the greatest order ever.
    pub(super) fn fill(self, items: impl Iterator<Item = Item<'g>>, last_order: u64) {
        let to = self.whole();
        let mut state = self.state();
        let mut last = self.last_order();
        for item in items {
            to[state.tail].store(Word::item(item, short_tag(item.key())));
            item.set_position(state.tail);
            state.tail += 1;
            last = item.order();
        }
        if last < last_order {
            to[state.tail].store(Word::number(last_order));
            state.tail += 1;
            state.gaps += 1;
        }
        self.set_state(state);
    }
}

/// Frees a row's memory, without its items.
///
/// # Safety
/// `head` comes from [`allocate`], no thread uses it any more, and this is called once for it.
pub(super) unsafe fn free(head: NonNull<RowHead>) {
    // SAFETY: not freed yet, by the caller's promise.
    let state = unsafe { head.as_ref() }.state.load(Ordering::Relaxed);
    if MODEL {
        // SAFETY: no thread uses it any more, by the caller's promise.
        let row = unsafe { Row::from_raw(head) };
        // Tells the model that no thread uses the slots from now on.
        row.whole().iter().for_each(Slot::end);
    }
    // SAFETY: allocated with this layout: the class never changes.
    unsafe { dealloc(head.as_ptr().cast(), layout(State::unpack(state).class)) };
}

unsafe fn free_retired(head: *mut ()) {
    if let Some(head) = NonNull::new(head.cast::<RowHead>()) {
        // SAFETY: retired once; the grace period is over.
        unsafe { free(head) };
    }
}

/// Frees a row after a grace period, without its items.
///
/// # Safety
/// No reader can find it from now on, and it is retired once.
pub(super) unsafe fn retire(head: NonNull<RowHead>) {
    // SAFETY: the caller's promise; memory can be freed on any thread.
    unsafe { epoch::retire_with(head.as_ptr().cast(), free_retired) };
}

/// A tag that differs for most names of a small directory, without hashing: names in a row tend to
/// differ at their ends.
#[inline]
fn short_tag(key: &[u8]) -> u16 {
    match *key {
        [first, .., before, last] => {
            let mixed = before.wrapping_mul(31) ^ first.rotate_left(4) ^ key.len() as u8;
            u16::from_le_bytes([last, mixed])
        }
        [first, last] => u16::from_le_bytes([last, first]),
        [only] => u16::from(only),
        [] => 0,
    }
}
