//! Names in order: found by key or by number, by readers that take no lock and write nothing.
//!
//! A [`Catalog`] grows through three forms: empty (no memory at all), small (up to 31 slots that
//! are searched) and big (the same in order, and a hash table beside it). Names are items with
//! memory of their own, which no form ever moves; forms are changed by building the next one and
//! publishing it with one store.
//!
//! *Invariants.* A key is there once. Orders are given by whoever inserts; each is greater than
//! all that were ever there. Every operation of a writer leaves a whole catalog behind. A name is
//! found by key from a moment before it is listed until a moment before it is listed no more.
//!
//! *Locking.* Writers exclude each other by a lock of one byte. Readers need a guard only; what is
//! taken out is freed when their guards are gone. The version is odd while two names change
//! together (a rename): readers wait those few stores out, so that they see both or none.

mod body;
mod growth;
mod hash;
mod item;
mod iter;
mod outcome;
mod reshape;
mod row;
mod segment;
mod slot;
mod table;
mod writer;

pub use item::Item;
pub use iter::Items;
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
        loop {
            let version = self.version();
            let found = self.view(guard).get(key);
            if self.is_at(version) {
                return found;
            }
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
        matches!(self.body.load(), body::Form::Empty { .. })
    }

    /// The greatest order that a name has or ever had.
    #[must_use]
    pub fn last_order(&self, guard: &Guard) -> u64 {
        self.view(guard).last_order()
    }

    /// A number that changes with every rename and exchange (not with insertions and removals).
    /// Waits while one is under way.
    ///
    /// What was read between this and an [`is_at`](Self::is_at) that is true shows all renames
    /// wholly or not at all.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u32 {
        // Acquire pairs with the release at a change's end: all of it is seen.
        let version = self.version.load(Ordering::Acquire);
        if version & 1 == 0 {
            version
        } else {
            self.wait_for_version()
        }
    }

    #[cold]
    fn wait_for_version(&self) -> u32 {
        let mut looks = 0;
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version & 1 == 0 {
                return version;
            }
            looks += 1;
            pause(looks);
        }
    }

    /// Has no name been renamed since [`version`](Self::version) returned this?
    #[inline]
    #[must_use]
    pub fn is_at(&self, version: u32) -> bool {
        // Pairs with the fence at a change's begin: who saw any of its stores sees it odd.
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }

    /// Waits for the right to change the catalog. Never under a guard, which would keep memory from
    /// being freed meanwhile.
    #[must_use]
    pub fn lock(&self) -> CatalogWriter<'_> {
        self.lock.lock();
        CatalogWriter::locked(self)
    }

    /// The right to change the catalog, if nobody has it.
    #[must_use]
    pub fn try_lock(&self) -> Option<CatalogWriter<'_>> {
        self.lock.try_lock().then(|| CatalogWriter::locked(self))
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
