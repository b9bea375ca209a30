//! References: uses of an object that give themselves back.
#![expect(unsafe_code, reason = "a counted pointer")]

use super::freeing::Freeing;
use super::held::{Held, update};
use super::word::Word;
use crate::prefetch::prefetch;
use crate::primitive::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// A use of an object: while it lives, the object is neither freeing nor freed.
///
/// It may outlive its index: its last reference then frees the object.
///
/// Dropping it is [`Ref::release`] for callers that cannot end a marked object. The object stays in
/// the index, marked and without uses, to be found by eviction.
pub struct Ref<T: Send + Sync + 'static> {
    held: NonNull<Held<T>>,
    counts: PhantomData<Held<T>>,
}

// SAFETY: a reference gives `&T` to its thread (`T: Sync`), and the last one may drop `T` there
// (`T: Send`); the count is atomic.
unsafe impl<T: Send + Sync + 'static> Send for Ref<T> {}
// SAFETY: as above; `&Ref` gives `&T` and clones.
unsafe impl<T: Send + Sync + 'static> Sync for Ref<T> {}

/// Where the second line of an object begins.
const LINE: usize = 64;

impl<T: Send + Sync + 'static> Held<T> {
    /// A use, unless it is freeing.
    #[inline]
    #[must_use]
    pub fn try_ref(&self) -> Option<Ref<T>> {
        // A user will look at the rest as well; without the prefetch that load waits for the
        // exchange.
        prefetch(ptr::from_ref(self).cast::<u8>().wrapping_add(LINE));
        if self.acquire()? && self.sharing.note() {
            self.share();
        }
        // SAFETY: the use just counted is this reference's.
        Some(unsafe { Ref::from_use(NonNull::from(self)) })
    }

    /// As [`Held::try_ref`], for a scan over all objects: its use does not count as a sign that
    /// several threads use this one.
    #[inline]
    #[must_use]
    pub fn try_ref_in_passing(&self) -> Option<Ref<T>> {
        self.acquire()?;
        // SAFETY: the use just counted is this reference's.
        Some(unsafe { Ref::from_use(NonNull::from(self)) })
    }
}

impl<T: Send + Sync + 'static> Ref<T> {
    /// # Safety
    /// A use of `held` was counted, and only this reference gives it back.
    #[inline]
    pub(super) unsafe fn from_use(held: NonNull<Held<T>>) -> Self {
        Self {
            held,
            counts: PhantomData,
        }
    }

    /// Turns it into a raw use, and returns the key by which that is given back: find the object,
    /// and call [`Held::forget`].
    #[inline]
    pub fn into_raw(self) -> u64 {
        let key = self.key();
        let now = self.state();
        if now.is_drained() {
            // The word has released many uses that the shares have counted: it needs their sum.
            drop(self.unshare());
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: this use; nothing else gives it up.
        if let Some(after) = unsafe { Held::make_raw(this.held) }
            && after.is_freeing()
        {
            // The index was dropped, so the raw use could not be given back.
            drop(last(this.held, after));
        }
        key
    }

    /// Releases the use. `Some` if it was the last one of a marked object: the object is freeing
    /// now, and the caller owns its end.
    #[inline]
    #[must_use = "a marked object that is not freed stays in its index"]
    pub fn release(self) -> Option<Freeing<T>> {
        let this = ManuallyDrop::new(self);
        // SAFETY: this use; nothing else gives it back.
        unsafe { release(this.held) }
    }

    /// Makes the object freeing, marked or not, if this is its last use. No other thread gets one
    /// from then on.
    ///
    /// # Errors
    /// The reference, if there are others.
    #[inline]
    pub fn release_last(self) -> Result<Freeing<T>, Self> {
        let last = |word: Word| {
            let after = word.released();
            let after = if after.is_freeing() {
                after
            } else {
                after.evicted()?
            };
            (!after.is_detached()).then_some(after)
        };
        // AcqRel, as in `Held::release`.
        if update(&self.word, self.state(), Ordering::AcqRel, last).is_none() {
            return Err(self);
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: this use was counted until the step that made it freeing, so it was this step.
        Ok(unsafe { Freeing::from_end(this.held) })
    }

    /// Are these uses of the same object?
    #[inline]
    #[must_use]
    pub fn ptr_eq(a: &Self, b: &Self) -> bool {
        a.held == b.held
    }
}

/// # Safety
/// As for [`Held::release`].
#[inline(never)]
unsafe fn release<T: Send + Sync + 'static>(held: NonNull<Held<T>>) -> Option<Freeing<T>> {
    // SAFETY: the caller's promise.
    let after = unsafe { Held::release(held) }?;
    after.is_freeing().then(|| last(held, after)).flatten()
}

/// The end of an object that releasing its last use has made freeing.
#[cold]
fn last<T: Send + Sync + 'static>(held: NonNull<Held<T>>, word: Word) -> Option<Freeing<T>> {
    // SAFETY: a use was counted until the step that made it freeing, so it was this step.
    let freeing = unsafe { Freeing::from_end(held) };
    // An unmarked object was ended because its index was dropped; then dropping this frees it.
    word.is_marked_freeing().then_some(freeing)
}

impl<T: Send + Sync + 'static> Drop for Ref<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this use; nothing else gives it back.
        drop(unsafe { release(self.held) });
    }
}

impl<T: Send + Sync + 'static> Clone for Ref<T> {
    #[inline]
    fn clone(&self) -> Self {
        // Never refused: an object in use is not freeing.
        match self.try_ref() {
            Some(held) => held,
            None => unreachable!("an object in use is freeing"),
        }
    }
}

impl<T: Send + Sync + 'static> Deref for Ref<T> {
    type Target = Held<T>;

    #[inline]
    fn deref(&self) -> &Held<T> {
        // SAFETY: the object lives, because this use is counted.
        unsafe { self.held.as_ref() }
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ref").field(&**self).finish()
    }
}
