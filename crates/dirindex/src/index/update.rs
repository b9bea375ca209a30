//! Changing a index under its lock.
//!
//! *Invariants.* Everything is built before anything is published, so an operation cannot fail once
//! readers can see a part of it. An item is retired after it was taken out of both row and table.
#![expect(unsafe_code, reason = "readers may look at all that is changed here")]

use super::body::{Form, View};
use super::dir_index::DirIndex;
use super::item::{self, Item, KEY_MAX, TAG_END, VALUE_END};
use super::outcome::{InsertError, Removed};
use super::row::{self, NAMES_MAX, Row};
use super::segment::{self, Change};
use super::writer::DirIndexWriter;

/// Orders are below this.
const ORDER_END: u64 = 1 << 63;

impl<'a> DirIndexWriter<'a> {
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
                self.index.body.store(Form::Small(row));
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
        let view = self.inside();
        let row = view.row()?;
        let (slot, item) = match view {
            View::Big(table) => {
                let (slot, item) = table.find(table.hash(key), key)?;
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
            segment::clear(slot);
        }
        row.remove(item);
        self.shrink();
        // SAFETY: taken out of row and table above; not used below.
        unsafe { item.retire() };
        Some(removed)
    }

    /// Changes value and tag of a name. Returns the old ones.
    ///
    /// # Panics
    /// If the value is 2^60 or more, or the tag 16 or more.
    pub fn replace(&mut self, key: &[u8], value: u64, tag: u8) -> Option<(u64, u8)> {
        assert!(value < VALUE_END && tag < TAG_END, "out of range");
        Some(self.inside().get(key)?.set_payload(value, tag))
    }

    /// Makes readers of these keys wait until the result is dropped.
    fn change(&self, one: &[u8], other: &[u8]) -> Change<'a> {
        match self.inside() {
            View::Big(table) => Change::begin(table.home(one), table.home(other)),
            _ => Change::of([Some(&self.index.version), None]),
        }
    }

    /// Exchanges the values and tags of two names, atomically for readers. Returns `false`, without
    /// a change, unless both exist.
    pub fn exchange(&mut self, one: &[u8], other: &[u8]) -> bool {
        let view = self.inside();
        let (Some(first), Some(second)) = (view.get(one), view.get(other)) else {
            return false;
        };
        let _change = self.change(one, other);
        let (value, tag) = first.payload();
        let (value, tag) = second.set_payload(value, tag);
        first.set_payload(value, tag);
        true
    }

    /// Gives a name another key; its order, value and tag stay. Returns the order. Returns `None`,
    /// without a change, unless `from` exists and `to` does not and is a valid key.
    ///
    /// A reader that finds the new key does not find the old one any more, and a reader that does
    /// not find the old one finds the new one.
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
                let _change = self.change(from, to);
                row.substitute(old, new);
            }
            View::Big(table) => {
                let (from_hash, to_hash) = (table.hash(from), table.hash(to));
                let table = self.make_room(table, to_hash);
                let row = table.row();
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

    /// Removes `from` and gives its value to `to`, atomically for readers. Returns what both were.
    /// Returns `None`, without a change, unless two different names exist.
    pub fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(Removed, Removed)> {
        let view = self.inside();
        let (source, target) = (view.get(from)?, view.get(to)?);
        if from == to {
            return None;
        }
        let (moved, replaced) = (Removed::of(source), Removed::of(target));
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
        self.shrink();
        // SAFETY: taken out of row and table above; not used below.
        unsafe { source.retire() };
        Some((moved, replaced))
    }

    /// Removes all names. The greatest order stays.
    pub fn clear(&mut self) {
        let last_order = self.last_order();
        self.put(Form::Empty { last_order });
    }

    /// Replaces all names, and the greatest order, by those of another index. Readers see names
    /// that were prepared apart all at once. An empty index makes this one as new.
    pub fn adopt(&mut self, names: DirIndex) {
        let form = {
            let _theirs = names.lock();
            let form = names.body.load();
            names.body.store(Form::Empty { last_order: 0 });
            form
        };
        self.put(form);
    }
}

/// A new item, which the caller puts into the index.
fn fresh<'a>(key: &[u8], order: u64, value: u64, tag: u8) -> Item<'a> {
    // SAFETY: not freed before it is taken out again.
    unsafe { Item::from_raw(item::allocate(key, order, value, tag)) }
}
