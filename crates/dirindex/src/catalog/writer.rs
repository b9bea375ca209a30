//! Changing a catalog under its lock.
//!
//! *Invariants.* What changes is built before anything is published, so that every operation
//! comes to its end once readers can see a part of it. An item is retired after it was taken out
//! of both row and table.
#![expect(unsafe_code, reason = "readers may look at all that is changed here")]

use super::Catalog;
use super::body::{Form, View};
use super::item::{self, Item, KEY_MAX, TAG_END, VALUE_END};
use super::iter::Items;
use super::load::NewName;
use super::outcome::{InsertError, Removed};
use super::row::{self, NAMES_MAX, Row};
use super::segment::{self, Change};
use super::sought::Sought;
use std::fmt;
use std::marker::PhantomData;

/// Orders are below this.
const ORDER_END: u64 = 1 << 63;

/// The right to change a catalog; others wait for it until this is dropped.
///
/// Dropped at any moment it leaves a whole catalog. It belongs to the thread that locked it.
pub struct CatalogWriter<'a> {
    pub(super) catalog: &'a Catalog,
    /// Forgotten once a name may have come, moved or gone.
    pub(super) sought: Option<Sought<'a>>,
    own_thread: PhantomData<*mut ()>,
}

impl Drop for CatalogWriter<'_> {
    fn drop(&mut self) {
        // SAFETY: locked by `Catalog::lock` for this writer, on this thread.
        unsafe { self.catalog.lock.unlock() };
    }
}

impl<'a> CatalogWriter<'a> {
    /// The writer of a catalog that was just locked for it.
    pub(super) fn locked(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            sought: None,
            own_thread: PhantomData,
        }
    }

    fn view(&self) -> View<'_> {
        // SAFETY: only this writer takes anything out, and by `&mut self`.
        unsafe { self.catalog.body.view() }
    }

    /// As [`view`](Self::view), for changes: what is found is good until it is retired.
    pub(super) fn inside(&self) -> View<'a> {
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
        let name = NewName {
            key,
            order,
            value,
            tag,
        };
        match self.take_missing(key) {
            Some(hash) => self.insert_hashed(name, Some(hash), true),
            None => self.insert_hashed(name, None, false),
        }
    }

    /// The same; the hash, if somebody has computed it. `is_new`: it is not there in the big form.
    #[inline]
    pub(super) fn insert_hashed(
        &mut self,
        name: NewName<'_>,
        hash: Option<u64>,
        is_new: bool,
    ) -> Result<(), InsertError> {
        self.sought = None;
        let NewName {
            key,
            order,
            value,
            tag,
        } = name;
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
                let hash = hash.unwrap_or_else(|| table.hash(key));
                debug_assert!(!is_new || table.find(hash, key).is_none());
                if !is_new && table.find(hash, key).is_some() {
                    return Err(InsertError::Taken);
                }
                let row = self.lengthen(table);
                let item = fresh(key, order, value, tag);
                if !table.put_near(hash, item) {
                    self.make_room(table, hash).put(hash, item);
                }
                let fits = row.push(item);
                debug_assert!(fits, "room was made for it");
            }
        }
        Ok(())
    }

    /// Removes a name.
    pub fn remove(&mut self, key: &[u8]) -> Option<Removed> {
        let sought = self.take_found(key);
        let view = self.inside();
        let row = view.row()?;
        let (slot, item) = match view {
            View::Big(table) => {
                let found = sought.or_else(|| table.find(table.hash(key), key));
                let (slot, item) = found?;
                (Some(slot), item)
            }
            _ => (None, row.find(key)?),
        };
        let removed = Removed::of(item);
        if row.len() == 1 {
            let last_order = row.last_order();
            self.put(Form::Empty { last_order });
            return Some(removed);
        }
        if let Some(slot) = slot {
            row.mark(item);
            segment::clear(slot);
        }
        row.remove(item);
        self.shrink();
        // SAFETY: taken out of row and table above; not used below.
        unsafe { item.retire() };
        Some(removed)
    }

    /// Lets a name lead elsewhere; its place stays. Returns the former value and tag.
    ///
    /// # Panics
    /// If the value is 2^60 or more, or the tag 16 or more.
    pub fn replace(&mut self, key: &[u8], value: u64, tag: u8) -> Option<(u64, u8)> {
        assert!(value < VALUE_END && tag < TAG_END, "out of range");
        Some(self.inside().get(key)?.set_payload(value, tag))
    }

    /// Readers of these keys wait for the end of this.
    fn change(&self, one: &[u8], other: &[u8]) -> Change<'a> {
        match self.inside() {
            View::Big(table) => Change::begin(table.home(one), table.home(other)),
            _ => Change::of([Some(&self.catalog.version), None]),
        }
    }

    /// Makes searches along the row pass over these names. Those of the small form look at all names.
    fn mark<const N: usize>(&self, items: [Item<'a>; N]) {
        if let View::Big(table) = self.inside() {
            items.into_iter().for_each(|item| table.row().mark(item));
        }
    }

    /// The change is over, and they are still there.
    fn unmark<const N: usize>(&self, items: [Item<'a>; N]) {
        if let View::Big(table) = self.inside() {
            items.into_iter().for_each(|item| table.row().unmark(item));
        }
    }

    /// Lets two names lead to where the other did, at once for readers. False, and nothing
    /// changes, unless both are there.
    pub fn exchange(&mut self, one: &[u8], other: &[u8]) -> bool {
        let view = self.inside();
        let (Some(first), Some(second)) = (view.get(one), view.get(other)) else {
            return false;
        };
        self.mark([first, second]);
        {
            let _change = self.change(one, other);
            let (value, tag) = first.payload();
            let (value, tag) = second.set_payload(value, tag);
            first.set_payload(value, tag);
        }
        self.unmark([first, second]);
        true
    }

    /// Gives a name another key; place, value and tag stay. Returns the order; `None`, and
    /// nothing changes, unless `from` is there and `to` is not, and could be.
    ///
    /// A reader who finds the new key finds the old one no more, and one who does not find the old
    /// one finds the new.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Option<u64> {
        if to.is_empty() || to.len() > KEY_MAX {
            return None;
        }
        self.sought = None;
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
                let _change = self.change(from, to);
                row.substitute(old, new);
            }
            View::Big(table) => {
                let (from_hash, to_hash) = (table.hash(from), table.hash(to));
                let table = self.make_room(table, to_hash);
                let row = table.row();
                row.mark(old);
                let _change = self.change(from, to);
                table.put(to_hash, new);
                row.substitute(old, new);
                if let Some((slot, _)) = table.find(from_hash, from) {
                    segment::clear(slot);
                }
            }
        }
        // SAFETY: taken out of row and table above; not used below.
        unsafe { old.retire() };
        Some(order)
    }

    /// Removes `from` and lets `to` lead to where it did, at once for readers. Returns what both
    /// were; `None`, and nothing changes, unless two different names are there.
    pub fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(Removed, Removed)> {
        self.sought = None;
        let view = self.inside();
        let (source, target) = (view.get(from)?, view.get(to)?);
        if from == to {
            return None;
        }
        let (moved, replaced) = (Removed::of(source), Removed::of(target));
        self.mark([source, target]);
        {
            let _change = self.change(from, to);
            target.set_payload(moved.value, moved.tag);
            if let View::Big(table) = view
                && let Some((slot, _)) = table.find(table.hash(from), from)
            {
                segment::clear(slot);
            }
            // Not the only name: there are two.
            if let Some(row) = view.row() {
                row.remove(source);
            }
        }
        self.unmark([target]);
        self.shrink();
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
        let form = {
            let _theirs = names.lock();
            let form = names.body.load();
            names.body.store(Form::Empty { last_order: 0 });
            form
        };
        self.put(form);
    }
}

/// A new item, which the caller is about to put into the catalog.
fn fresh<'a>(key: &[u8], order: u64, value: u64, tag: u8) -> Item<'a> {
    // SAFETY: not freed before it is taken out again.
    unsafe { Item::from_raw(item::allocate(key, order, value, tag)) }
}

impl fmt::Debug for CatalogWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.after(0)).finish()
    }
}
