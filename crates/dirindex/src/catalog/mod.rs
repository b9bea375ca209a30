//! Names in order: found by key or by number, by readers that take no lock and write nothing.
//!
//! A [`Catalog`] grows through three forms: empty (no memory at all), small (up to 31 slots that
//! are searched) and big (the same in order, and a hash table beside them). Names are items with
//! memory of their own, which no form ever moves; forms are changed by building the next one and
//! publishing it with one store.
//!
//! *Invariants.* A key is there once. Orders are given by the caller of `insert`; each is greater
//! than all before. Every operation leaves a whole catalog behind. A name is found by key from a
//! moment before it is listed until a moment before it is listed no more; in between its slot in the
//! listing is marked, so that a search [along the listing](LookupHint) ends as one by key does.
//!
//! *Locking.* There is one writer at a time: it holds a lock of one byte. Readers need a guard only;
//! what is taken out is freed when their guards are gone. While two names change together (a
//! rename), readers of these wait for the end of that.

mod body;
mod growth;
mod hash;
mod item;
mod iter;
mod load;
mod lookup_hint;
mod outcome;
mod reshape;
mod row;
mod segment;
mod slot;
mod sought;
mod table;
mod writer;

pub use item::Item;
pub use iter::Items;
pub use load::NewName;
pub use lookup_hint::LookupHint;
pub use outcome::{InsertError, Removed};
pub use writer::CatalogWriter;

use crate::catalog_primitive::{AtomicU32, Lock, MODEL, Ordering, constant, fence, pause};
use crate::epoch::{self, Guard};
use body::{Body, View};
use std::fmt;

/// Names of 1 to 255 bytes in order of numbers that only grow, each with a value and a tag.
///
/// Empty it has 16 bytes and no memory elsewhere.
pub struct Catalog {
    body: Body,
    version: AtomicU32,
    lock: Lock,
}

const _: () = assert!(MODEL || size_of::<Catalog>() == 16);

/// Names change together.
struct Changing;

impl Catalog {
    constant! {
        /// A catalog without names.
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
    fn view<'g>(&'g self, _guard: &'g Guard) -> View<'g> {
        // SAFETY: what readers can find is retired when it is taken out, hence freed after the
        // guard; the end of the catalog, which frees at once, is excluded by `&'g self`.
        unsafe { self.body.view() }
    }

    /// The name with this key.
    #[inline]
    #[must_use]
    pub fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<Item<'g>> {
        match self.view(guard) {
            View::Empty { .. } => None,
            View::Big(table) => table.get(key),
            View::Small(_) => self.get_small(key, guard),
        }
    }

    #[inline]
    fn get_small<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<Item<'g>> {
        match self.try_get_small(key, guard) {
            Ok(found) => found,
            Err(Changing) => self.get_late(key, guard),
        }
    }

    /// The name with this key, if no names change together at the moment.
    #[inline]
    fn try_get_small<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Item<'g>>, Changing> {
        // Acquire pairs with the release at a change's end: all of it is seen.
        let version = self.version.load(Ordering::Acquire);
        if version & 1 == 1 {
            return Err(Changing);
        }
        let found = match self.view(guard) {
            View::Empty { .. } => None,
            View::Small(row) => row.find(key),
            // It has grown since.
            View::Big(_) => return Err(Changing),
        };
        // Pairs with the fence at a change's begin: who saw any of its stores sees it odd.
        fence(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) != version {
            return Err(Changing);
        }
        Ok(found)
    }

    #[cold]
    #[inline(never)]
    fn get_late<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<Item<'g>> {
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

    /// The name of exactly this order.
    #[must_use]
    pub fn at<'g>(&'g self, order: u64, guard: &'g Guard) -> Option<Item<'g>> {
        self.view(guard).at(order)
    }

    /// The names of orders greater than this, ascending, as far as they are there by now.
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

    /// The greatest order that a name has or ever had. A name that is being added may be there before its order is told
    /// here, never after.
    #[must_use]
    pub fn last_order(&self, guard: &Guard) -> u64 {
        self.view(guard).last_order()
    }

    /// Waits for the right to change the catalog. Under a guard, which keeps memory from being freed
    /// meanwhile, only where no writer waits for anything that needs time.
    #[inline]
    #[must_use]
    pub fn lock(&self) -> CatalogWriter<'_> {
        self.lock.lock();
        CatalogWriter::locked(self)
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = epoch::pin();
        f.debug_list().entries(self.after(0, &guard)).finish()
    }
}
