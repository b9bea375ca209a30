//! How a catalog takes another form, once a change makes it too large or too small.
//!
//! *Invariants.* The new form is whole before it is published; what it replaces is retired after.
#![expect(unsafe_code, reason = "readers may look at all that is replaced here")]

use super::body::{Form, View};
use super::growth;
use super::item::Item;
use super::outcome::Removed;
use super::row::{self, Row, RowHead};
use super::table::{self, Table, TableHead};
use super::writer::CatalogWriter;
use std::ptr::NonNull;

impl<'a> CatalogWriter<'a> {
    /// Publishes another form and frees the old one, all names included, after a grace period.
    pub(super) fn put(&mut self, form: Form) {
        let old = self.catalog.body.load();
        let row = self.inside().row();
        self.catalog.body.store(form);
        for item in row.into_iter().flat_map(Row::items) {
            // SAFETY: the body does not lead to it any more, and every item is in the row once.
            unsafe { item.retire() };
        }
        // SAFETY: the body leads there no more.
        unsafe { retire_form(old) };
    }

    /// Takes an item out of the row (it is in no table any more) and retires it.
    pub(super) fn take_from_row(&mut self, view: View<'a>, item: Item<'a>) -> Removed {
        let removed = Removed::of(item);
        let Some(row) = view.row() else {
            return removed;
        };
        if row.len() == 1 {
            let old = self.catalog.body.load();
            let last_order = row.last_order();
            self.catalog.body.store(Form::Empty { last_order });
            // SAFETY: the body leads there no more.
            unsafe { retire_form(old) };
        } else {
            row.remove(item);
            self.shrink(row);
        }
        // SAFETY: in no table, says the caller, and out of the row; not used below.
        unsafe { item.retire() };
        removed
    }

    /// Provides room in the table for a name of this hash; returns the table to go on with.
    pub(super) fn make_room(&mut self, mut table: Table<'a>, hash: u64) -> Table<'a> {
        while !table.make_room(hash) {
            let Form::Big(old) = self.catalog.body.load() else {
                unreachable!("the caller has a table");
            };
            let doubled = table.doubled();
            self.catalog.body.store(Form::Big(doubled));
            // SAFETY: the body leads to the doubled one now, which has the segments.
            unsafe { table::retire(old) };
            // SAFETY: see `inside`.
            table = unsafe { Table::from_raw(doubled) };
        }
        table
    }

    /// Gives memory back, if there is much more than the names need.
    pub(super) fn shrink(&mut self, row: Row<'a>) {
        if row.is_wasteful() {
            self.resize(row, None);
        }
    }

    /// Moves the names, and one more that the table has already, to a row of the right size.
    pub(super) fn resize(&mut self, row: Row<'a>, more: Option<Item<'a>>) {
        let names = row.len() + usize::from(more.is_some());
        let class = row::class_for(names);
        let new_row: NonNull<RowHead> = row::allocate(class);
        // SAFETY: made just now.
        let inside: Row<'a> = unsafe { Row::from_raw(new_row) };
        inside.copy_from(row);
        if let Some(item) = more {
            inside.push(item);
        }
        let old = self.catalog.body.load();
        match old {
            Form::Empty { .. } => {}
            Form::Small(old_row) if row::is_small(class) => {
                self.catalog.body.store(Form::Small(new_row));
                // SAFETY: the body leads to the new one.
                unsafe { row::retire(old_row) };
            }
            Form::Big(_) if row::is_small(class) => {
                self.catalog.body.store(Form::Small(new_row));
                // SAFETY: the body leads to the new row.
                unsafe { retire_form(old) };
            }
            Form::Big(head) => {
                // SAFETY: see `inside`.
                let table: Table<'a> = unsafe { Table::from_raw(head) };
                let old_row = table.row_head();
                if table.is_wasteful(names) {
                    self.rebuild(new_row);
                    // SAFETY: the body leads to the new table.
                    unsafe { table::retire_whole(head) };
                } else {
                    table.set_row(new_row);
                }
                // SAFETY: neither body nor table lead there any more.
                unsafe { row::retire(old_row) };
            }
            Form::Small(old_row) => {
                self.rebuild(new_row);
                // SAFETY: the body leads to the new table.
                unsafe { row::retire(old_row) };
            }
        }
    }

    /// Publishes a new table for a row.
    fn rebuild(&mut self, row: NonNull<RowHead>) {
        // SAFETY: the row and its items are live, and this is the writer.
        let table: NonNull<TableHead> = unsafe { growth::build(row) };
        self.catalog.body.store(Form::Big(table));
    }
}

/// Frees a row, or a table and its row, after a grace period; not the items.
///
/// # Safety
/// The body does not lead there any more, and it is retired once.
unsafe fn retire_form(form: Form) {
    match form {
        Form::Empty { .. } => {}
        // SAFETY: says the caller.
        Form::Small(row) => unsafe { row::retire(row) },
        Form::Big(head) => {
            // SAFETY: live until the grace period is over.
            let table: Table<'_> = unsafe { Table::from_raw(head) };
            // SAFETY: says the caller.
            unsafe { row::retire(table.row_head()) };
            // SAFETY: as above.
            unsafe { table::retire_whole(head) };
        }
    }
}
