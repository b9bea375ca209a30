//! Objects by number, found without a lock and counted in their own word.
//!
//! An [`Index`] maps keys to objects ([`Held`]) by a 64-way tree. Looking one up writes nothing;
//! a use ([`Ref`]) is one compare-exchange in the object. Objects are built before they become
//! visible, and leave in two steps: first the one who ends an object gets it to himself
//! ([`Freeing`], in which state lookups wait), then it is buried, and freed after a grace period.
//!
//! *Invariants.*
//! - An object with a use is not dying, and one that is dying gets none. There is at most one
//!   [`Freeing`] for an object, hence one burial.
//! - An object is freed once: after its burial and a grace period; or, if its index is dropped
//!   first, at once, by its last [`Ref`] or by its [`Freeing`].
//! - The length is the number of objects in the tree, as a sum of counters that each core keeps for
//!   itself.
//! - Operations on different keys write no line in common, if the keys are in different aligned
//!   groups of eight and their leaves exist.
//!
//! - A raw use is counted by the object, while that is in the tree, or in [`EvictedUses`] under its key.
//! - Nor do uses of the same object, once several threads use it in turn: it has [`shares`] then.
//!
//! *Locking.* Waiting for a dying object takes one lock of a small table ([`wait`]), and changing how
//! an object's uses are counted takes one of its own ([`shares`]); both are leaves. Nothing else
//! takes any, but who empties a leaf ([`suspects`]). Nobody may wait for an object while he holds a [`Guard`]: he would keep all garbage
//! alive as long.
#![expect(unsafe_code, reason = "the tree holds objects as plain pointers")]

mod drain;
mod evicted_uses;
mod freeing;
mod held;
mod many;
mod node;
mod prepared;
mod radix;
mod reference;
mod runs;
mod scan;
mod shares;
mod suspects;
mod wait;
mod walk;
mod word;

pub use drain::Remains;
pub use evicted_uses::{EvictedUses, EvictedUsesLocked};
pub use freeing::Freeing;
pub use held::Held;
pub use prepared::Prepared;
pub use reference::Ref;
pub use runs::Runs;

use crate::counter::ShardedCounter;
use crate::epoch::{self, Guard};
use crate::primitive::Ordering;
use radix::Radix;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use suspects::Suspects;
use word::{FREED, Word};

/// Objects by number. The keys go from 0 to `u64::MAX - 1`; dense ranges are cheapest.
pub struct Index<T: Send + Sync + 'static> {
    tree: Radix,
    population: ShardedCounter,
    suspects: Suspects,
    owns: PhantomData<Held<T>>,
}

impl<T: Send + Sync + 'static> Index<T> {
    /// An index without objects.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tree: Radix::new(),
            population: ShardedCounter::new(),
            suspects: Suspects::new(),
            owns: PhantomData,
        }
    }

    /// The object at `key`, if there is one: it exists as long as the guard, and may be dying.
    #[inline]
    pub fn peek<'g>(&'g self, key: u64, guard: &'g Guard) -> Option<&'g Held<T>> {
        let held = self.tree.get(key, guard).cast::<Held<T>>();
        // SAFETY: only objects of this type are inserted; one met under the guard is freed after
        // it, or by the end of the index, which `&'g self` excludes.
        unsafe { held.as_ref() }
    }

    /// A use of the object at `key`. Waits while that is dying, and then looks again.
    ///
    /// The caller holds neither a [`Guard`] nor the object's [`Freeing`]: this waits until that is
    /// gone.
    pub fn get(&self, key: u64) -> Option<Ref<T>> {
        loop {
            let guard = epoch::pin();
            let held = self.peek(key, &guard)?;
            if let Some(held) = held.try_ref() {
                return Some(held);
            }
            drop(guard);
            self.wait(key);
        }
    }

    /// Sleeps while the object at `key` is dying.
    #[cold]
    fn wait(&self, key: u64) {
        let ticket = wait::ticket(key);
        let marked = self
            .peek(key, &epoch::pin())
            .is_some_and(Held::mark_awaited);
        if marked {
            wait::sleep(key, ticket);
        }
    }

    /// Puts `value` in at `key`, complete and with one use. Waits while an object there is dying, on
    /// the same terms as [`Index::get`].
    ///
    /// # Errors
    /// The value, when the key is taken by a live object (or is `u64::MAX`).
    pub fn publish(&self, key: u64, value: T) -> Result<Ref<T>, T> {
        self.publish_prepared(key, Prepared::new(value))
            .map_err(Prepared::into_inner)
    }

    /// As [`Index::publish`], for an object that is in its place already.
    ///
    /// # Errors
    /// The object, in the same cases.
    pub fn publish_prepared(&self, key: u64, prepared: Prepared<T>) -> Result<Ref<T>, Prepared<T>> {
        if key == u64::MAX {
            return Err(prepared);
        }
        let held = prepared.leak(key);
        loop {
            let guard = epoch::pin();
            let Err(other) = self.tree.insert(key, held.as_ptr().cast(), &guard) else {
                self.population.add(1);
                // SAFETY: it was made with one use, which is this reference's.
                return Ok(unsafe { Ref::from_use(held) });
            };
            // SAFETY: an object in the tree, met under the guard.
            let live = unsafe { &*other.cast::<Held<T>>() }.is_live();
            drop(guard);
            if live {
                // SAFETY: made above, and nobody has seen it.
                return Err(unsafe { Prepared::from_raw(held) });
            }
            self.wait(key);
        }
    }

    /// Ends the object if it is live and has no use of any kind.
    pub fn begin_evict(&self, held: &Held<T>) -> Option<Freeing<T>> {
        held.evict()
    }

    /// Ends the object if it is live and has no reference. Raw uses that it has are counted by it until it is buried, then by
    /// [`EvictedUses`].
    pub fn begin_evict_though_held(&self, held: &Held<T>) -> Option<Freeing<T>> {
        held.evict_though_held()
    }

    /// Takes a dying object out, wakes the lookups that wait for it, and frees it after a grace period. Raw uses that it had are
    /// forgotten: see [`EvictedUsesLocked::free`].
    ///
    /// # Panics
    /// If the object is of another index: it lives again then.
    pub fn free(&self, freeing: Freeing<T>) {
        self.take_out(freeing);
    }

    /// As [`Index::free`]. Gives the raw uses that it had: from now on nothing else counts them.
    fn take_out(&self, freeing: Freeing<T>) -> u64 {
        let key = freeing.key();
        let guard = epoch::pin();
        let held = freeing.held();
        let Some(leaf) = self.tree.remove(key, held.as_ptr().cast(), &guard) else {
            drop(guard);
            panic!("object {key} is buried in an index that does not hold it");
        };
        let held = freeing.into_inner();
        self.population.add(-1);
        // SAFETY: out of the index, and freed below at the earliest.
        let word = unsafe { Held::word_of(held) };
        // Release: who finds the mark finds the slot empty. Acquire: it is freed after all that
        // was done to it.
        let before = Word(word.fetch_or(FREED, Ordering::AcqRel));
        if before.is_awaited() {
            wait::wake(key);
        }
        // SAFETY: unreachable for those who pin themselves from now on; it is dying for ever, so
        // that nobody gets a use; and this was its only `Freeing`.
        unsafe { epoch::retire_with(held.as_ptr().cast(), free::<T>) };
        let noted = self
            .suspects
            .note(node::leaf_of(key), || leaf.is_empty(key, 0));
        if let Some(suspect) = noted {
            self.tree.prune(suspect, &guard);
        }
        before.raw_uses()
    }

    /// How many objects there are. A sum over cores: exact only while none comes or goes.
    #[must_use]
    pub fn len(&self) -> u64 {
        u64::try_from(self.population.sum()).unwrap_or(0)
    }

    /// Bytes of what finds the objects: 8 an object where their keys are dense, 512 where each is alone. A sum over cores.
    #[must_use]
    pub fn node_bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// A figure that grows with each object that this thread adds: it means nothing but for its
    /// differences, and those can have parts that other threads added.
    #[inline]
    #[must_use]
    pub fn own_len(&self) -> i64 {
        self.population.own()
    }

    /// Is there no object? As exact as [`Index::len`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// # Safety
/// As for [`Held::free`].
unsafe fn free<T: Send + Sync + 'static>(held: *mut ()) {
    if let Some(held) = NonNull::new(held.cast::<Held<T>>()) {
        // SAFETY: the caller's promise.
        unsafe { Held::free(held) };
    }
}

impl<T: Send + Sync + 'static> Index<T> {
    /// Takes all objects out, to be let go by several threads.
    pub fn take_apart(&mut self) -> Remains<T> {
        let objects = self.population.sum();
        self.population.add(-objects);
        // SAFETY: only objects of this type are inserted, and no guard is left under which one was met, since those
        // borrow the index.
        unsafe { Remains::of(&mut self.tree) }
    }
}

impl<T: Send + Sync + 'static> Drop for Index<T> {
    fn drop(&mut self) {
        let objects = self.len();
        self.take_apart().end(objects);
    }
}

impl<T: Send + Sync + 'static> Default for Index<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Index<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
