//! The index: what is done to its objects by key.
#![expect(unsafe_code, reason = "the tree holds objects as plain pointers")]

use super::drain::Remains;
use super::freeing::Freeing;
use super::held::Held;
use super::prepared::Prepared;
use super::radix::Radix;
use super::reference::Ref;
use super::suspects::Suspects;
use super::word::{FREED, Word};
use super::{node, wait};
use crate::counter::ShardedCounter;
use crate::epoch::{self, Guard};
use crate::primitive::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Objects by number. The keys go from 0 to `u64::MAX - 1`; dense ranges are cheapest.
pub struct Index<T: Send + Sync + 'static> {
    pub(super) tree: Radix,
    pub(super) population: ShardedCounter,
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

    /// The object at `key`, if there is one. It exists as long as the guard, and may be freeing.
    #[inline]
    pub fn peek<'g>(&'g self, key: u64, guard: &'g Guard) -> Option<&'g Held<T>> {
        let held = self.tree.get(key, guard).cast::<Held<T>>();
        // SAFETY: only objects of this type are inserted. One found under the guard is freed after
        // it, or by dropping the index, which `&'g self` excludes.
        unsafe { held.as_ref() }
    }

    /// A use of the object at `key`. Waits while that is freeing, and then looks again.
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
            self.await_end(key);
        }
    }

    /// Sleeps while the object at `key` is freeing.
    #[cold]
    fn await_end(&self, key: u64) {
        let ticket = wait::ticket(key);
        let marked = self
            .peek(key, &epoch::pin())
            .is_some_and(Held::mark_awaited);
        if marked {
            wait::sleep(key, ticket);
        }
    }

    /// Inserts `value` at `key`, complete and with one use. Waits while an object there is freeing,
    /// on the same terms as [`Index::get`].
    ///
    /// # Errors
    /// The value, when the key is taken by a live object (or is `u64::MAX`).
    pub fn publish(&self, key: u64, value: T) -> Result<Ref<T>, T> {
        self.publish_prepared(key, Prepared::new(value))
            .map_err(Prepared::into_inner)
    }

    /// As [`Index::publish`], for an object that is on the heap already.
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
            // SAFETY: an object in the tree, found under the guard.
            let live = unsafe { &*other.cast::<Held<T>>() }.is_live();
            drop(guard);
            if live {
                // SAFETY: made above, and no other thread has seen it.
                return Err(unsafe { Prepared::from_raw(held) });
            }
            self.await_end(key);
        }
    }

    /// Makes the object freeing if it is live and has no use of either kind.
    pub fn begin_evict(&self, held: &Held<T>) -> Option<Freeing<T>> {
        held.evict()
    }

    /// Makes the object freeing if it is live and has no reference. The object counts its raw uses
    /// until it is taken out, then [`EvictedUses`](super::EvictedUses) does.
    pub fn begin_evict_though_held(&self, held: &Held<T>) -> Option<Freeing<T>> {
        held.evict_though_held()
    }

    /// Takes a freeing object out, wakes the lookups that wait for it, and frees it after a grace
    /// period. Its raw uses are forgotten: see
    /// [`EvictedUsesLocked::free`](super::EvictedUsesLocked::free).
    ///
    /// # Panics
    /// If the object is of another index: it is live again then.
    pub fn free(&self, freeing: Freeing<T>) {
        self.take_out(freeing);
    }

    /// As [`Index::free`]. Returns the raw uses that it had, which nothing counts from now on.
    pub(super) fn take_out(&self, freeing: Freeing<T>) -> u64 {
        let key = freeing.key();
        let guard = epoch::pin();
        let held = freeing.held();
        let Some(leaf) = self.tree.remove(key, held.as_ptr().cast(), &guard) else {
            drop(guard);
            panic!("object {key} is freed in an index that does not hold it");
        };
        let held = freeing.into_inner();
        self.population.add(-1);
        // SAFETY: out of the index, and freed by the grace period below at the earliest.
        let word = unsafe { Held::word_of(held) };
        // Release: a thread that sees the mark sees the slot empty. Acquire: freeing comes after
        // all that was done to the object.
        let before = Word(word.fetch_or(FREED, Ordering::AcqRel));
        if before.is_awaited() {
            wait::wake(key);
        }
        // SAFETY: threads that pin from now on cannot reach it. It stays freeing for ever, so it
        // gets no use, and this was its only `Freeing`.
        unsafe { epoch::retire_with(held.as_ptr().cast(), free::<T>) };
        let noted = self
            .suspects
            .note(node::leaf_of(key), || leaf.is_empty(key, 0));
        if let Some(suspect) = noted {
            self.tree.prune(suspect, &guard);
        }
        before.raw_uses()
    }

    /// How many objects there are. A sum over cores: exact only while none is inserted or removed.
    #[must_use]
    pub fn len(&self) -> u64 {
        u64::try_from(self.population.sum()).unwrap_or(0)
    }

    /// Bytes of the tree's nodes: 8 an object where keys are dense, 512 where each is alone. A sum
    /// over cores.
    #[must_use]
    pub fn node_bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// A counter that grows with each object that this thread inserts. Only differences of it mean
    /// something, and they may contain changes of other threads that had the slot.
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
    /// Takes all objects out, for several threads to drop.
    pub fn take_remains(&mut self) -> Remains<T> {
        let objects = self.population.sum();
        self.population.add(-objects);
        // SAFETY: only objects of this type are inserted. No guard is left under which one was
        // found, since guards of `peek` borrow the index.
        unsafe { Remains::of(&mut self.tree) }
    }
}

impl<T: Send + Sync + 'static> Drop for Index<T> {
    fn drop(&mut self) {
        let objects = self.len();
        self.take_remains().end(objects);
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
