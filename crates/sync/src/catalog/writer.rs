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
use super::outcome::{InsertError, Removed};
use super::row::{self, NAMES_MAX, Row};
use super::segment;
use crate::catalog_primitive::{AtomicU32, Ordering, fence};
use std::fmt;
use std::marker::PhantomData;

/// Orders are below this.
const ORDER_END: u64 = 1 << 63;

/// The right to change a catalog; others wait for it until this is dropped.
///
/// Dropped at any moment it leaves a whole catalog. It belongs to the thread that locked it.
pub struct CatalogWriter<'a> {
    pub(super) catalog: &'a Catalog,
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
