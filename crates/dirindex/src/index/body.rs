//! The word that leads to everything in an index, in its three forms.
//!
//! *Invariant.* A body is empty and holds the greatest order ever. Or it leads to a row of one or
//! more names and at most 31 slots. Or it leads to a table and its row, which may be without names
//! only while room is [reserved](super::DirIndexWriter::reserve).
#![expect(unsafe_code, reason = "a pointer whose low bits tell the form")]

use super::item::{self, Item};
use super::iter::Items;
use super::row::{self, Row, RowHead};
use super::table::{self, Table, TableHead};
use crate::primitive::{AtomicPtr, Ordering, constant};
use std::ptr::{self, NonNull};

/// Set if there are no names; the other bits are the greatest order ever.
const EMPTY: usize = 1;
/// Set if it leads to a table.
const BIG: usize = 2;

/// The root pointer.
pub(super) struct Body(AtomicPtr<()>);

/// The target of the word, by address.
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

/// The target of the word, to be read.
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

    /// Publishes another form. The caller holds the index's lock.
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

    /// The target of the word.
    ///
    /// # Safety
    /// Nothing found there is freed during `'g`, by a guard or the index's lock.
    #[inline]
    pub(super) unsafe fn view<'g>(&self) -> View<'g> {
        match self.load() {
            Form::Empty { last_order } => View::Empty { last_order },
            // SAFETY: in the body, so it is live; the caller promises that it is not freed during
            // 'g.
            Form::Small(row) => View::Small(unsafe { Row::from_raw(row) }),
            // SAFETY: as above.
            Form::Big(table) => View::Big(unsafe { Table::from_raw(table) }),
        }
    }
}

impl Drop for Body {
    /// Frees everything at once: a reader would borrow the index.
    fn drop(&mut self) {
        let form = self.load();
        // SAFETY: live until freed below.
        if let Some(row) = unsafe { self.view() }.row() {
            for item in row.items() {
                // SAFETY: every item is in the row, once, and no thread reads it.
                unsafe { item::free(item.as_raw()) };
            }
        }
        match form {
            Form::Empty { .. } => {}
            // SAFETY: it is the body's own, and no thread reads it.
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

    /// The row of all names, in the forms that have one.
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
