//! How a catalog takes another form, once a change makes it too large or too small.
//!
//! *Invariants.* The new form is whole before it is published; what it replaces is retired after.
//!
//! *Locking.* All of this under the catalog's whole lock.
#![expect(unsafe_code, reason = "readers may look at all that is replaced here")]

use super::body::{Form, View};
use super::growth;
use super::item::Item;
use super::lanes::{self, Lanes};
use super::row::{self, GAPS_FREE, Row};
use super::table::{self, Table};
use super::writer::CatalogWriter;
use std::ptr::NonNull;

/// Names of a table between two looks at whether it is too large for them: that reads the state of all rows.
const LOOKED_AT: usize = 8;

impl<'a> CatalogWriter<'a> {
    /// Publishes another form and frees the old one, all names included, after a grace period.
    pub(super) fn put(&mut self, form: Form) {
        self.sought = None;
        let old = self.catalog.body.load();
        let items = self.inside().after(0);
        self.catalog.body.store(form);
        for item in items {
            // SAFETY: the body does not lead to it any more, and every item is in one row, once.
            unsafe { item.retire() };
        }
        // SAFETY: the body leads there no more.
        unsafe { retire_form(old) };
    }

    /// Provides room in the table for a name of this hash; returns the table to go on with.
    pub(super) fn make_room(&mut self, mut table: Table<'a>, hash: u64) -> Table<'a> {
        self.sought = None;
        let names = table.lanes().names();
        while !table.make_room(hash, names) {
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

    /// Provides a free slot at the end of a lane's row, or of the trunk (0).
    pub(super) fn lengthen(&mut self, lanes: &'a Lanes, number: usize) {
        let old = lanes.row(number);
        if old.is_some_and(|row| lanes.tail(number) < row.capacity()) {
            return;
        }
        let about = old.map_or(0, |row| lanes.names_about(row, number));
        let head = row::allocate(row::class_for(about + 1));
        // SAFETY: made just now.
        let row: Row<'a> = unsafe { Row::from_raw(head) };
        let names = old.map_or(0, |old| row.take_over(old, number));
        if let Some(old) = lanes.set_row(number, head, names) {
            // SAFETY: no lane has it any more.
            unsafe { row::retire(old) };
        }
    }

    /// Gives memory back, if there is much more than the names need. What claims have noted is lost
    /// then.
    pub fn shrink(&mut self) {
        self.shrink_if(|_| true);
    }

    /// The same once a name was taken out: of a table, it looks at every [`LOOKED_AT`]th only.
    ///
    /// Names that come and go beside that leave gaps, but no more than the rows have slots: a full one is
    /// replaced by one of the right size.
    #[inline]
    pub(super) fn shrink_after_one(&mut self) {
        self.shrink_if(|names| names.is_multiple_of(LOOKED_AT));
    }

    #[inline]
    fn shrink_if(&mut self, is_time: impl FnOnce(usize) -> bool) {
        self.sought = None;
        match self.inside() {
            View::Empty { .. } => {}
            View::Small(row) => {
                if row.is_wasteful() {
                    self.resize(row, None);
                }
            }
            View::Big(table) => {
                let lanes = table.lanes();
                let names = lanes.names();
                if is_time(names) && is_wasteful(names, lanes.slots()) {
                    self.rebuild(table, names);
                }
            }
        }
    }

    /// Moves the names of the small form, and one more, to a row of the right size, or to a table.
    pub(super) fn resize(&mut self, row: Row<'a>, more: Option<Item<'a>>) {
        let old = self.catalog.body.load();
        let names = row.len() + usize::from(more.is_some());
        let last_order = more.map_or_else(|| row.last_order(), Item::order);
        let items = row.items().chain(more);
        self.catalog.body.store(form_of(names, last_order, items));
        // SAFETY: the body leads to the new form.
        unsafe { retire_form(old) };
    }

    /// Moves the names of the big form to a single row of the right size. Nobody counts on what
    /// claims noted: see [`forget_notes`](Self::forget_notes).
    fn rebuild(&mut self, table: Table<'a>, names: usize) {
        let old = self.catalog.body.load();
        let lanes = table.lanes();
        let last_order = lanes.last_order();
        if names == 0 {
            return self.put(Form::Empty { last_order });
        }
        let class = row::class_for(names);
        if row::is_small(class) || table.is_wasteful(names) {
            let form = form_of(names, last_order, lanes.after(0));
            self.catalog.body.store(form);
            // SAFETY: the body leads to the new form.
            return unsafe { retire_form(old) };
        }
        let old = table.lanes_head();
        table.set_lanes(long_rows(class, names, last_order, lanes.after(0)));
        // SAFETY: the table leads to the new ones.
        unsafe { lanes::retire(old) };
    }
}

/// Is there much more than so many names need? `slots`: in use, and all.
pub(super) fn is_wasteful(names: usize, (used, all): (usize, usize)) -> bool {
    used > 2 * names + GAPS_FREE || all > 4 * names + GAPS_FREE
}

/// A form for so many names, one or more.
fn form_of<'g>(
    names: usize,
    last_order: u64,
    items: impl Iterator<Item = Item<'g>> + Clone,
) -> Form {
    let class = row::class_for(names);
    if row::is_small(class) {
        let head = row::allocate(class);
        // SAFETY: made just now.
        unsafe { Row::from_raw(head) }.fill(items, last_order);
        return Form::Small(head);
    }
    let rows = long_rows(class, names, last_order, items.clone());
    Form::Big(growth::build(rows, names, items))
}

/// Rows of the big form: the trunk alone, with all names.
pub(super) fn long_rows<'g>(
    class: u32,
    names: usize,
    last_order: u64,
    items: impl Iterator<Item = Item<'g>>,
) -> NonNull<Lanes> {
    let head = row::allocate(class);
    // SAFETY: made just now.
    let row: Row<'g> = unsafe { Row::from_raw(head) };
    (0..)
        .zip(items)
        .for_each(|(position, item)| row.append(position, item, 0));
    lanes::allocate(head, names, last_order)
}

/// Frees a row, or a table and its rows, after a grace period; not the items.
///
/// # Safety
/// The body does not lead there any more, and it is retired once.
pub(super) unsafe fn retire_form(form: Form) {
    match form {
        Form::Empty { .. } => {}
        // SAFETY: says the caller.
        Form::Small(row) => unsafe { row::retire(row) },
        Form::Big(head) => {
            // SAFETY: live until the grace period is over.
            let table: Table<'_> = unsafe { Table::from_raw(head) };
            let all = table.lanes_head();
            // SAFETY: says the caller.
            unsafe { table::retire_whole(head) };
            // SAFETY: as above.
            unsafe { lanes::retire(all) };
        }
    }
}
