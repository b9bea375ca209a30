//! Changing a catalog, by whoever has locked it.
//!
//! *Invariants.* What changes is built before anything is published, so that every operation
//! comes to its end once readers can see a part of it. An item is retired after it was taken out
//! of both row and table.
#![expect(unsafe_code, reason = "readers may look at all that is changed here")]

use super::Catalog;
use super::body::{Form, View};
use super::item::{self, Item, KEY_MAX, TAG_END, VALUE_END};
use super::iter::Items;
use super::row::{self, NAMES_MAX, Row, RowHead};
use super::segment;
use super::table::{self, Table, TableHead};
use crate::catalog_primitive::{AtomicU32, Ordering, fence};
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Orders are below this.
const ORDER_END: u64 = 1 << 63;

/// Why a name was not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// The key is there already.
    Taken,
    /// The order is not greater than every order so far.
    OutOfOrder,
    /// There are 2^28 names, or the order is 2^63 or more.
    Full,
    /// The key is empty or longer than 255 bytes, the value 2^60 or more, or the tag 16 or more.
    Unfit,
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Taken => "the key is there already",
            Self::OutOfOrder => "the order is not greater than every order so far",
            Self::Full => "no more names can be numbered",
            Self::Unfit => "key, value or tag is out of range",
        })
    }
}

impl Error for InsertError {}

/// What a name was that is there no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its place in the listing.
    pub order: u64,
    /// What it led to.
    pub value: u64,
    /// The value's tag.
    pub tag: u8,
}

impl Removed {
    fn of(item: Item<'_>) -> Self {
        let (value, tag) = item.payload();
        Self {
            order: item.order(),
            value,
            tag,
        }
    }
}

/// The right to change a catalog; others wait for it until this is dropped.
///
/// Dropped at any moment it leaves a whole catalog. It belongs to the thread that locked it.
pub struct CatalogWriter<'a> {
    catalog: &'a Catalog,
    own_thread: PhantomData<*mut ()>,
}

impl Drop for CatalogWriter<'_> {
    fn drop(&mut self) {
        // SAFETY: locked by `Catalog::lock` or `try_lock` for this writer, on this thread.
        unsafe { self.catalog.lock.unlock() };
    }
}

/// While it lives, readers wait.
struct Change<'a>(&'a AtomicU32);

impl<'a> Change<'a> {
    fn begin(version: &'a AtomicU32) -> Self {
        version.store(
            version.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
        // Pairs with the fence in `Catalog::is_at`.
        fence(Ordering::Release);
        Self(version)
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquire in `Catalog::version`.
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(version.wrapping_add(1), Ordering::Release);
    }
}

impl<'a> CatalogWriter<'a> {
    /// The writer of a catalog that was just locked for it.
    pub(super) fn locked(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            own_thread: PhantomData,
        }
    }

    fn view(&self) -> View<'_> {
        // SAFETY: only this writer takes anything out, and by `&mut self`.
        unsafe { self.catalog.body.view() }
    }

    /// As [`view`](Self::view), for changes: what is found is good until it is retired.
    fn inside(&self) -> View<'a> {
        // SAFETY: nobody else retires, and the methods below do not use what they have retired;
        // they let nothing of this lifetime out.
        unsafe { self.catalog.body.view() }
    }

    /// The name with this key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Item<'_>> {
        self.view().get(key)
    }

    /// The name of exactly this order.
    #[must_use]
    pub fn at(&self, order: u64) -> Option<Item<'_>> {
        self.view().at(order)
    }

    /// The names of orders greater than this, ascending.
    #[must_use]
    pub fn after(&self, order: u64) -> Items<'_> {
        self.view().after(order)
    }

    /// Number of names.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.view().len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.catalog.is_empty()
    }

    /// The greatest order that a name has or ever had.
    #[must_use]
    pub fn last_order(&self) -> u64 {
        self.view().last_order()
    }

    /// Adds a name. Orders start at 1.
    ///
    /// # Errors
    /// See [`InsertError`]; nothing has changed then.
    pub fn insert(
        &mut self,
        key: &[u8],
        order: u64,
        value: u64,
        tag: u8,
    ) -> Result<(), InsertError> {
        if key.is_empty() || key.len() > KEY_MAX || value >= VALUE_END || tag >= TAG_END {
            return Err(InsertError::Unfit);
        }
        let view = self.inside();
        if order >= ORDER_END || view.len() as usize >= NAMES_MAX {
            return Err(InsertError::Full);
        }
        if order <= view.last_order() {
            return Err(InsertError::OutOfOrder);
        }
        match view {
            View::Empty { .. } => {
                let row = row::allocate(row::class_for(1));
                // SAFETY: made just now.
                let inside = unsafe { Row::from_raw(row) };
                inside.push(fresh(key, order, value, tag));
                self.catalog.body.store(Form::Small(row));
            }
            View::Small(row) => {
                if row.find(key).is_some() {
                    return Err(InsertError::Taken);
                }
                let item = fresh(key, order, value, tag);
                if !row.push(item) {
                    self.resize(row, Some(item));
                }
            }
            View::Big(table) => {
                let hash = table.hash(key);
                if table.find(hash, key).is_some() {
                    return Err(InsertError::Taken);
                }
                let item = fresh(key, order, value, tag);
                if !table.put_near(hash, item) {
                    self.make_room(table, hash).put(hash, item);
                }
                // Not `table.row()`: there may be another table by now.
                if let Some(row) = self.inside().row()
                    && !row.push(item)
                {
                    self.resize(row, Some(item));
                }
            }
        }
        Ok(())
    }

    /// Removes a name.
    pub fn remove(&mut self, key: &[u8]) -> Option<Removed> {
        let view = self.inside();
        let item = match view {
            View::Empty { .. } => return None,
            View::Small(row) => row.find(key)?,
            View::Big(table) => {
                let (slot, item) = table.find(table.hash(key), key)?;
                segment::clear(slot);
                item
            }
        };
        Some(self.take_from_row(view, item))
    }

    /// Lets a name lead elsewhere; its place stays. Returns the former value and tag.
    ///
    /// # Panics
    /// If the value is 2^60 or more, or the tag 16 or more.
    pub fn replace(&mut self, key: &[u8], value: u64, tag: u8) -> Option<(u64, u8)> {
        assert!(value < VALUE_END && tag < TAG_END, "out of range");
        Some(self.inside().get(key)?.set_payload(value, tag))
    }

    /// Lets two names lead to where the other did, at once for readers (see
    /// [`Catalog::version`]). False, and nothing changes, unless both are there.
    pub fn exchange(&mut self, one: &[u8], other: &[u8]) -> bool {
        let view = self.inside();
        let (Some(one), Some(other)) = (view.get(one), view.get(other)) else {
            return false;
        };
        let _change = Change::begin(&self.catalog.version);
        let (value, tag) = one.payload();
        let (value, tag) = other.set_payload(value, tag);
        one.set_payload(value, tag);
        true
    }

    /// Gives a name another key; place, value and tag stay. Returns the order; `None`, and
    /// nothing changes, unless `from` is there and `to` is not, and could be.
    ///
    /// A reader finds one of the two in every moment, and never both (see [`Catalog::version`]).
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Option<u64> {
        if to.is_empty() || to.len() > KEY_MAX {
            return None;
        }
        let view = self.inside();
        let old = view.get(from)?;
        if view.get(to).is_some() {
            return None;
        }
        let order = old.order();
        let (value, tag) = old.payload();
        let new = fresh(to, order, value, tag);
        match view {
            View::Empty { .. } => {}
            View::Small(row) => {
                let _change = Change::begin(&self.catalog.version);
                row.substitute(old, new);
            }
            View::Big(table) => {
                let (from_hash, to_hash) = (table.hash(from), table.hash(to));
                let table = self.make_room(table, to_hash);
                let _change = Change::begin(&self.catalog.version);
                table.put(to_hash, new);
                table.row().substitute(old, new);
                if let Some((slot, _)) = table.find(from_hash, from) {
                    segment::clear(slot);
                }
            }
        }
        // SAFETY: taken out of row and table above; not used below.
        unsafe { old.retire() };
        Some(order)
    }

    /// Removes `from` and lets `to` lead to where it did, at once for readers (see
    /// [`Catalog::version`]). Returns what both were; `None`, and nothing changes, unless two
    /// different names are there.
    pub fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(Removed, Removed)> {
        let view = self.inside();
        let (source, target) = (view.get(from)?, view.get(to)?);
        if from == to {
            return None;
        }
        let (moved, replaced) = (Removed::of(source), Removed::of(target));
        let row = view.row()?;
        {
            let _change = Change::begin(&self.catalog.version);
            target.set_payload(moved.value, moved.tag);
            if let View::Big(table) = view
                && let Some((slot, _)) = table.find(table.hash(from), from)
            {
                segment::clear(slot);
            }
            // Not the only name: there are two.
            row.remove(source);
        }
        self.shrink(row);
        // SAFETY: taken out of row and table above; not used below.
        unsafe { source.retire() };
        Some((moved, replaced))
    }

    /// Removes all names. Orders go on to grow.
    pub fn clear(&mut self) {
        let last_order = self.last_order();
        self.put(Form::Empty { last_order });
    }

    /// Takes over the names of another catalog for its own, and its greatest order: for names that
    /// were prepared apart, which readers are to see all at once; or, with an empty one, to forget
    /// all names as if they had never been.
    pub fn adopt(&mut self, names: Catalog) {
        let form = names.body.load();
        names.body.store(Form::Empty { last_order: 0 });
        self.put(form);
    }

    /// Publishes another form and frees the old one, all names included, after a grace period.
    fn put(&mut self, form: Form) {
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
    fn take_from_row(&mut self, view: View<'a>, item: Item<'a>) -> Removed {
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
    fn make_room(&mut self, mut table: Table<'a>, hash: u64) -> Table<'a> {
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
    fn shrink(&mut self, row: Row<'a>) {
        if row.is_wasteful() {
            self.resize(row, None);
        }
    }

    /// Moves the names, and one more that the table has already, to a row of the right size.
    fn resize(&mut self, row: Row<'a>, more: Option<Item<'a>>) {
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
        let table: NonNull<TableHead> = unsafe { table::build(row) };
        self.catalog.body.store(Form::Big(table));
    }
}

/// A new item, which the caller is about to put into the catalog.
fn fresh<'a>(key: &[u8], order: u64, value: u64, tag: u8) -> Item<'a> {
    // SAFETY: not freed before it is taken out again.
    unsafe { Item::from_raw(item::allocate(key, order, value, tag)) }
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

impl fmt::Debug for CatalogWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.after(0)).finish()
    }
}
