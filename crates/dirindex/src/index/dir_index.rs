//! The index, and its readers.

use super::body::{Body, View};
use super::item::Item;
use super::iter::Items;
use crate::epoch::{self, Guard};
use crate::primitive::{AtomicU32, Lock, MODEL, Ordering, constant, fence, pause};
use std::fmt;

/// Names of 1 to 255 bytes in ascending order, each with a value and a tag.
///
/// An empty one has 16 bytes and no other memory.
pub struct DirIndex {
    pub(super) body: Body,
    pub(super) version: AtomicU32,
    pub(super) lock: Lock,
}

const _: () = assert!(MODEL || size_of::<DirIndex>() == 16);

/// Two names are changing together.
struct Changing;

impl DirIndex {
    constant! {
        /// A index without names.
        #[must_use]
        pub fn new() -> Self {
            Self {
                body: Body::new(),
                version: AtomicU32::new(0),
                lock: Lock::new(),
            }
        }
    }

    #[inline]
    #[expect(unsafe_code, reason = "the guard keeps it alive")]
    pub(super) fn view<'g>(&'g self, _guard: &'g Guard) -> View<'g> {
        // SAFETY: everything that readers can find is retired when it is taken out, so it is freed
        // after the guard. Dropping the index, which frees at once, is excluded by `&'g self`.
        unsafe { self.body.view() }
    }

    /// The name with this key.
    #[inline]
    #[must_use]
    pub fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<Item<'g>> {
        match self.view(guard) {
            View::Empty { .. } => None,
            View::Big(table) => table.get(key),
            View::Small(_) => match self.try_get_small(key, guard) {
                Ok(found) => found,
                Err(Changing) => self.get_slow(key, guard),
            },
        }
    }

    /// The name with this key, unless names are changing together.
    #[inline]
    fn try_get_small<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Item<'g>>, Changing> {
        // Acquire pairs with the release at the end of a change: all of it is visible.
        let version = self.version.load(Ordering::Acquire);
        if version & 1 == 1 {
            return Err(Changing);
        }
        let found = match self.view(guard) {
            View::Empty { .. } => None,
            View::Small(row) => row.find(key),
            // It has grown in between.
            View::Big(_) => return Err(Changing),
        };
        // Pairs with the fence at the begin of a change: a reader that saw any of its stores sees
        // the version odd.
        fence(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) != version {
            return Err(Changing);
        }
        Ok(found)
    }

    #[cold]
    #[inline(never)]
    fn get_slow<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<Item<'g>> {
        let mut looks = 0;
        loop {
            if let View::Big(table) = self.view(guard) {
                return table.get(key);
            }
            if let Ok(found) = self.try_get_small(key, guard) {
                return found;
            }
            looks += 1;
            pause(looks);
        }
    }

    /// The name with exactly this order.
    #[must_use]
    pub fn at<'g>(&'g self, order: u64, guard: &'g Guard) -> Option<Item<'g>> {
        self.view(guard).at(order)
    }

    /// The names with orders greater than this, ascending, as far as they are there when they are
    /// reached.
    #[must_use]
    pub fn after<'g>(&'g self, order: u64, guard: &'g Guard) -> Items<'g> {
        self.view(guard).after(order)
    }

    /// Number of names.
    #[must_use]
    pub fn len(&self, guard: &Guard) -> u32 {
        self.view(guard).len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len(&epoch::pin()) == 0
    }

    /// The greatest order that a name has or ever had. A name that is being added may be found
    /// before its order counts here, never after.
    #[must_use]
    pub fn last_order(&self, guard: &Guard) -> u64 {
        self.view(guard).last_order()
    }
}

impl Default for DirIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DirIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = epoch::pin();
        f.debug_list().entries(self.after(0, &guard)).finish()
    }
}
