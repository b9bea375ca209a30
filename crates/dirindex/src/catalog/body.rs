//! The word from which everything in a catalog is found, in its three forms.
//!
//! *Invariant.* A body is empty (and then remembers the greatest order ever), or leads to a row of
//! one or more names and at most 31 slots, or to a table and the row of its names (none of them only
//! while room is [reserved](super::CatalogWriter::reserve)).
#![expect(unsafe_code, reason = "a pointer whose low bits tell the form")]

use super::item::{self, Item};
use super::iter::Items;
use super::row::{self, Row, RowHead};
use super::table::{self, Table, TableHead};
use crate::catalog_primitive::{AtomicPtr, Ordering, constant};
use holdfast_sync::prefetch;
use std::ptr::{self, NonNull};

/// Set when there are no names; the other bits are the greatest order ever.
const EMPTY: usize = 1;
/// Set when it leads to a table.
const BIG: usize = 2;

/// The word.
pub(super) struct Body(AtomicPtr<()>);

/// What the word leads to, by address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// No names.
    Empty {
        /// The greatest order ever.
        last_order: u64,
    },
    /// A row that is searched.
    Small(NonNull<RowHead>),
    /// A table and its row.
    Big(NonNull<TableHead>),
}

/// What the word leads to, to be looked at.
#[derive(Clone, Copy)]
pub(super) enum View<'g> {
    /// No names.
    Empty {
        /// The greatest order ever.
        last_order: u64,
    },
    /// A row that is searched.
    Small(Row<'g>),
    /// A table and its row.
    Big(Table<'g>),
}

impl Body {
    constant! {
        pub(super) fn new() -> Self {
            Self(AtomicPtr::new(ptr::without_provenance_mut(EMPTY)))
        }
    }

    #[inline]
    pub(super) fn load(&self) -> Form {
        // Acquire pairs with the release in `store`: row and table were filled before.
        let raw = self.0.load(Ordering::Acquire);
        if raw.addr() & EMPTY != 0 {
            return Form::Empty {
                last_order: (raw.addr() >> 1) as u64,
            };
        }
        let is_big = raw.addr() & BIG != 0;
        let raw = raw.map_addr(|address| address & !BIG);
        if is_big {
            Form::Big(NonNull::new(raw.cast()).expect("a form without names is marked"))
        } else {
            Form::Small(NonNull::new(raw.cast()).expect("a form without names is marked"))
        }
    }

    /// Publishes another form; the catalog's lock is held.
    pub(super) fn store(&self, form: Form) {
        let raw = match form {
            Form::Empty { last_order } => {
                ptr::without_provenance_mut((last_order as usize) << 1 | EMPTY)
            }
            Form::Small(row) => row.as_ptr().cast::<()>(),
            Form::Big(table) => table
                .as_ptr()
                .cast::<()>()
                .map_addr(|address| address | BIG),
        };
        // Release: see `load`.
        self.0.store(raw, Ordering::Release);
    }

    /// What it leads to.
    ///
    /// # Safety
    /// Nothing that is found there is freed during `'g`: a guard or the catalog's lock sees to it.
    #[inline]
    pub(super) unsafe fn view<'g>(&self) -> View<'g> {
        match self.load() {
            Form::Empty { last_order } => View::Empty { last_order },
            // SAFETY: in the body, hence live; freed not before the end of 'g, says the caller.
            Form::Small(row) => View::Small(unsafe { Row::from_raw(row) }),
            // SAFETY: as above.
            Form::Big(table) => View::Big(unsafe { Table::from_raw(table) }),
        }
    }
}

/// Items that are fetched ahead of the one that is freed.
const AHEAD: usize = 8;

/// Frees items.
///
/// # Safety
/// Each comes once, and nobody looks at it; the iterator looks at slots only.
unsafe fn free_items<'g>(items: impl Iterator<Item = Item<'g>> + Clone) {
    let mut ahead = items.clone();
    let fetch = |item: Item<'_>| prefetch(item.as_raw().as_ptr());
    ahead.by_ref().take(AHEAD).for_each(fetch);
    for item in items {
        ahead.next().into_iter().for_each(fetch);
        // SAFETY: the caller's promise.
        unsafe { item::free(item.as_raw()) };
    }
}

impl Drop for Body {
    /// Frees everything at once: who could still look at it would borrow the catalog.
    fn drop(&mut self) {
        let form = self.load();
        // SAFETY: live until freed below.
        if let Some(row) = unsafe { self.view() }.row() {
            // SAFETY: every item is in the row, once, and nobody looks at it.
            unsafe { free_items(row.items()) };
        }
        match form {
            Form::Empty { .. } => {}
            // SAFETY: the body's own, and nobody looks at it.
            Form::Small(row) => unsafe { row::free(row) },
            Form::Big(table) => {
                // SAFETY: live until freed below.
                let row = unsafe { Table::from_raw(table) }.row_head();
                // SAFETY: as above.
                unsafe { row::free(row) };
                // SAFETY: as above.
                unsafe { table::free_whole(table) };
            }
        }
    }
}

impl<'g> View<'g> {
    /// The name with this key.
    #[inline]
    pub(super) fn get(self, key: &[u8]) -> Option<Item<'g>> {
        match self {
            View::Empty { .. } => None,
            View::Small(row) => row.find(key),
            View::Big(table) => Some(table.find(table.hash(key), key)?.1),
        }
    }

    pub(super) fn at(self, order: u64) -> Option<Item<'g>> {
        let first = self.after(order.checked_sub(1)?).next()?;
        (first.order() == order).then_some(first)
    }

    /// The row of all names, in either form that has one.
    #[inline]
    pub(super) fn row(self) -> Option<Row<'g>> {
        match self {
            View::Empty { .. } => None,
            View::Small(row) => Some(row),
            View::Big(table) => Some(table.row()),
        }
    }

    pub(super) fn after(self, order: u64) -> Items<'g> {
        self.row().map_or_else(Items::none, |row| row.after(order))
    }

    pub(super) fn len(self) -> u32 {
        self.row().map_or(0, |row| row.len() as u32)
    }

    pub(super) fn last_order(self) -> u64 {
        match self {
            View::Empty { last_order } => last_order,
            View::Small(row) => row.last_order(),
            View::Big(table) => table.row().last_order(),
        }
    }
}
