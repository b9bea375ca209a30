//! The one writer of an index, and what it reads.
#![expect(unsafe_code, reason = "the writer alone takes out what it reads")]

use super::body::View;
use super::dir_index::DirIndex;
use super::item::Item;
use super::iter::Items;
use std::marker::PhantomData;

/// The exclusive right to change an index, until it is dropped.
///
/// Dropped at any moment it leaves a whole index behind. It belongs to the thread that locked it.
pub struct DirIndexWriter<'a> {
    pub(super) index: &'a DirIndex,
    own_thread: PhantomData<*mut ()>,
}

impl Drop for DirIndexWriter<'_> {
    fn drop(&mut self) {
        // SAFETY: locked by `DirIndex::lock` for this writer, on this thread.
        unsafe { self.index.lock.unlock() };
    }
}

impl DirIndex {
    /// Locks the index for changes. A caller under a guard, which keeps garbage alive, must know
    /// that no writer holds the lock for long.
    #[inline]
    #[must_use]
    pub fn lock(&self) -> DirIndexWriter<'_> {
        self.lock.lock();
        DirIndexWriter {
            index: self,
            own_thread: PhantomData,
        }
    }
}

impl<'a> DirIndexWriter<'a> {
    fn view(&self) -> View<'_> {
        // SAFETY: only this writer takes anything out, and only by `&mut self`.
        unsafe { self.index.body.view() }
    }

    /// As [`view`](Self::view), for changes: what is found is valid until it is retired.
    pub(super) fn inside(&self) -> View<'a> {
        // SAFETY: only this writer retires, and its changes (`update`, `reshape`, `load`) do not
        // use what they have retired. They let nothing of this lifetime out.
        unsafe { self.index.body.view() }
    }

    /// The name with this key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Item<'_>> {
        self.view().get(key)
    }

    /// The name with exactly this order.
    #[must_use]
    pub fn at(&self, order: u64) -> Option<Item<'_>> {
        self.view().at(order)
    }

    /// The names with orders greater than this, ascending.
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
        self.index.is_empty()
    }

    /// The greatest order that a name has or ever had.
    #[must_use]
    pub fn last_order(&self) -> u64 {
        self.view().last_order()
    }
}
