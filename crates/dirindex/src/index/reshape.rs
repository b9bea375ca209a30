//! How an index changes its form when a change makes it too large or too small.
//!
//! *Invariants.* The new form is whole before it is published. What it replaces is retired after
//! that.
//!
//! *Locking.* All of this under the index's lock.
#![expect(unsafe_code, reason = "readers may look at all that is replaced here")]

use super::body::{Form, View};
use super::grow;
use super::item::Item;
use super::row::{self, Row, RowHead};
use super::table::{self, Table};
use super::writer::DirIndexWriter;
use std::ptr::NonNull;

impl<'a> DirIndexWriter<'a> {
    /// Publishes another form and frees the old one, all names included, after a grace period.
    pub(super) fn put(&mut self, form: Form) {
        let old = self.index.body.load();
        let items = self.inside().after(0);
        self.index.body.store(form);
        for item in items {
            // SAFETY: the body does not lead to it any more, and every item is in the row once.
            unsafe { item.retire() };
        }
        // SAFETY: the body does not lead there any more.
        unsafe { retire_form(old) };
    }

    /// Provides room in the table for a name of this hash; returns the current table.
    pub(super) fn make_room(&mut self, mut table: Table<'a>, hash: u64) -> Table<'a> {
        let names = table.row().len();
        while !table.make_room(hash, names) {
            let Form::Big(old) = self.index.body.load() else {
                unreachable!("the caller has a table");
            };
            let doubled = table.doubled();
            self.index.body.store(Form::Big(doubled));
            // SAFETY: the body leads to the doubled one now, which has the segments.
            unsafe { table::retire(old) };
            // SAFETY: see `inside`.
            table = unsafe { Table::from_raw(doubled) };
        }
        table
    }

    /// The row of this table, with room for one more name.
    pub(super) fn lengthen(&mut self, table: Table<'a>) -> Row<'a> {
        let row = table.row();
        if row.has_room() {
            return row;
        }
        let old = table.row_head();
        let head = row::allocate(row::class_for(row.len() + 1));
        // SAFETY: made just now.
        let longer: Row<'a> = unsafe { Row::from_raw(head) };
        longer.take_over(row);
        table.set_row(head);
        // SAFETY: the table has another row.
        unsafe { row::retire(old) };
        longer
    }

    /// Frees memory, if there is much more than the names need.
    pub fn shrink(&mut self) {
        match self.inside() {
            View::Empty { .. } => {}
            View::Small(row) => {
                if row.is_wasteful() {
                    self.resize(row, None);
                }
            }
            View::Big(table) => {
                if table.row().is_wasteful() {
                    self.rebuild(table);
                }
            }
        }
    }

    /// Moves the names of the small form, and one more, to a row of the right size or to a table.
    pub(super) fn resize(&mut self, row: Row<'a>, more: Option<Item<'a>>) {
        let old = self.index.body.load();
        let names = row.len() + usize::from(more.is_some());
        let last_order = more.map_or_else(|| row.last_order(), Item::order);
        let items = row.items().chain(more);
        self.index.body.store(form_of(names, last_order, items));
        // SAFETY: the body leads to the new form.
        unsafe { retire_form(old) };
    }

    /// Moves the names of the big form to a row of the right size, and to another table if this one
    /// is much too large.
    fn rebuild(&mut self, table: Table<'a>) {
        let row = table.row();
        let (names, last_order) = (row.len(), row.last_order());
        if names == 0 {
            return self.put(Form::Empty { last_order });
        }
        let class = row::class_for(names);
        if row::is_small(class) || table.is_wasteful(names) {
            let old = self.index.body.load();
            let form = form_of(names, last_order, row.items());
            self.index.body.store(form);
            // SAFETY: the body leads to the new form.
            return unsafe { retire_form(old) };
        }
        let old = table.row_head();
        table.set_row(filled_row(class, last_order, row.items()));
        // SAFETY: the table leads to the new one.
        unsafe { row::retire(old) };
    }
}

/// A form for `names` names, one or more.
fn form_of<'g>(
    names: usize,
    last_order: u64,
    items: impl Iterator<Item = Item<'g>> + Clone,
) -> Form {
    let class = row::class_for(names);
    let row = filled_row(class, last_order, items.clone());
    match row::is_small(class) {
        true => Form::Small(row),
        false => Form::Big(grow::build(row, names, items)),
    }
}

/// A row of this class with all names, and the greatest order ever.
pub(super) fn filled_row<'g>(
    class: u32,
    last_order: u64,
    items: impl Iterator<Item = Item<'g>>,
) -> NonNull<RowHead> {
    let head = row::allocate(class);
    // SAFETY: made just now.
    unsafe { Row::from_raw(head) }.fill(items, last_order);
    head
}

/// Frees a row, or a table and its row, after a grace period; not the items.
///
/// # Safety
/// The body does not lead there any more, and it is retired once.
pub(super) unsafe fn retire_form(form: Form) {
    match form {
        Form::Empty { .. } => {}
        // SAFETY: the caller's promise.
        Form::Small(row) => unsafe { row::retire(row) },
        Form::Big(head) => {
            // SAFETY: live until the grace period is over.
            let table: Table<'_> = unsafe { Table::from_raw(head) };
            let row = table.row_head();
            // SAFETY: the caller's promise.
            unsafe { table::retire_whole(head) };
            // SAFETY: as above.
            unsafe { row::retire(row) };
        }
    }
}
