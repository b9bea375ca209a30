//! The exclusive right to end an object.
#![expect(unsafe_code, reason = "a pointer that owns the end of an object")]

use super::held::{Held, change, update};
use super::wait;
use super::word::Word;
use crate::primitive::{AtomicU64, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::ptr::NonNull;

/// A freeing object: it has no reference and gets no use, and lookups wait. It may have raw uses
/// ([`Index::begin_evict_though_held`](super::Index::begin_evict_though_held)).
///
/// There is one at a time. It goes to [`Index::free`](super::Index::free). Dropping it instead
/// makes the object live again, without references and, if it was marked, still marked.
#[must_use = "dropping it brings the object back to life"]
pub struct Freeing<T: Send + Sync + 'static> {
    held: NonNull<Held<T>>,
    owns: PhantomData<Held<T>>,
}

// SAFETY: it gives `&T` to its thread (`T: Sync`), and that thread may drop `T` (`T: Send`).
unsafe impl<T: Send + Sync + 'static> Send for Freeing<T> {}
// SAFETY: as above; `&Freeing` gives `&T` only.
unsafe impl<T: Send + Sync + 'static> Sync for Freeing<T> {}

impl<T: Send + Sync + 'static> Freeing<T> {
    /// # Safety
    /// The caller's step made `held` freeing, and it makes only one `Freeing` of that step.
    pub(super) unsafe fn from_end(held: NonNull<Held<T>>) -> Self {
        Self {
            held,
            owns: PhantomData,
        }
    }

    pub(super) fn held(&self) -> NonNull<Held<T>> {
        self.held
    }

    /// The pointer; the object stays freeing.
    pub(super) fn into_inner(self) -> NonNull<Held<T>> {
        let held = self.held;
        mem::forget(self);
        held
    }

    /// Makes the object live again if it has raw uses: releasing the last of them will end it, if
    /// it is marked.
    pub fn unless_held(self) -> Option<Self> {
        let (key, step) = (self.key(), |word: Word| {
            (word.raw_uses() > 0 && !word.is_detached()).then(|| word.revived())
        });
        // AcqRel, as in the drop.
        let Some((before, _)) = update(self.word(), self.state(), Ordering::AcqRel, step) else {
            return Some(self);
        };
        mem::forget(self);
        if before.is_awaited() {
            wait::wake(key);
        }
        None
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: a freeing object is freed only through its one `Freeing`. The reference is to the
        // word alone: once the object is live again, other threads may end and free it.
        unsafe { Held::word_of(self.held) }
    }
}

impl<T: Send + Sync + 'static> Drop for Freeing<T> {
    fn drop(&mut self) {
        // Before the step: after it this thread may not touch the object.
        let key = self.key();
        // Release: what was done to it comes before its next use. Acquire: and before it is freed.
        let (before, _) = change(self.word(), self.state(), Ordering::AcqRel, |word| {
            if word.is_detached() {
                word
            } else {
                word.revived()
            }
        });
        if before.is_awaited() {
            wait::wake(key);
        }
        if before.is_detached() {
            // SAFETY: its index was dropped, so it is in none. It is freeing, so it has no user,
            // and this is its only `Freeing`.
            unsafe { Held::free(self.held) };
        }
    }
}

impl<T: Send + Sync + 'static> Deref for Freeing<T> {
    type Target = Held<T>;

    fn deref(&self) -> &Held<T> {
        // SAFETY: as in `word`.
        unsafe { self.held.as_ref() }
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> fmt::Debug for Freeing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Freeing").field(&**self).finish()
    }
}
