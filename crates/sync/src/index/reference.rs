//! References: uses of an object that give themselves back.
#![expect(unsafe_code, reason = "a counted pointer")]

use super::freeing::Freeing;
use super::held::{Held, update};
use super::word::Word;
use crate::primitive::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

/// A use of an object: while it lives, the object is neither dying nor freed.
///
/// It outlives its index: an object in use when the index is dropped is freed by its last
/// reference.
///
/// Dropping it is [`Ref::release`] for those who cannot end a doomed object: it is put back, still
/// doomed and without uses, to be found by eviction.
pub struct Ref<T: Send + Sync + 'static> {
    held: NonNull<Held<T>>,
    counts: PhantomData<Held<T>>,
}

// SAFETY: a reference gives `&T` to its thread (`T: Sync`), and the last one may drop `T` there
// (`T: Send`); the count is atomic.
unsafe impl<T: Send + Sync + 'static> Send for Ref<T> {}
// SAFETY: as above; `&Ref` gives `&T` and clones.
unsafe impl<T: Send + Sync + 'static> Sync for Ref<T> {}

impl<T: Send + Sync + 'static> Ref<T> {
    /// # Safety
    /// A use of `held` was counted that nobody else gives back.
    #[inline]
    pub(super) unsafe fn from_use(held: NonNull<Held<T>>) -> Self {
        Self {
            held,
            counts: PhantomData,
        }
    }

    /// Turns it into a raw use, and returns the key by which it is given back: find the object,
    /// and call [`Held::forget`].
    #[inline]
    pub fn into_raw(self) -> u64 {
        let key = self.key();
        let now = self.state();
        if now.is_drained() {
            // The word has taken many uses that the shares have counted: it needs them.
            drop(self.unshare());
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: this use; nothing else gives it up.
        if let Some(after) = unsafe { Held::make_raw(this.held) }
            && after.is_dying()
        {
            // The index is gone, and nobody could give the raw use back.
            drop(last(this.held, after));
        }
        key
    }

    /// Gives the use back. `Some` if it was the last one of a doomed object: the object is dying
    /// now, and the caller's to end.
    #[inline]
    #[must_use = "a doomed object that nobody ends stays in its index"]
    pub fn release(self) -> Option<Freeing<T>> {
        let this = ManuallyDrop::new(self);
        // SAFETY: this use; nothing else gives it back.
        unsafe { release(this.held) }
    }

    /// As [`Ref::release`], with the step that nearly always suffices in line: for walks, and what is done at each turn.
    /// Elsewhere that is too much code.
    #[inline]
    #[must_use = "a doomed object that nobody ends stays in its index"]
    pub fn release_inline(self) -> Option<Freeing<T>> {
        let now = self.state();
        let this = ManuallyDrop::new(self);
        // SAFETY: in use, until the step below, which is the last that looks at it.
        let word = unsafe { Held::word_of(this.held) };
        // AcqRel, as in `Held::release`.
        if let Some(after) = now.simply_released()
            && word
                .compare_exchange(now.0, after.0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        {
            return None;
        }
        // SAFETY: this use, which was not given back above.
        unsafe { release(this.held) }
    }

    /// Ends the object, doomed or not, if this is its last use: nobody else can get one from then on, and what follows can
    /// count on that.
    ///
    /// # Errors
    /// The reference, if there are others.
    #[inline]
    pub fn release_last(self) -> Result<Freeing<T>, Self> {
        let last = |word: Word| {
            let after = word.released();
            let after = if after.is_dying() {
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
        // SAFETY: this use was counted until the step that made it dying, so it was this step.
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
    after.is_dying().then(|| last(held, after)).flatten()
}

/// The end of an object that a step upon its last use has made dying.
#[cold]
fn last<T: Send + Sync + 'static>(held: NonNull<Held<T>>, word: Word) -> Option<Freeing<T>> {
    // SAFETY: a use was counted until the step that made it dying, so it was this step.
    let freeing = unsafe { Freeing::from_end(held) };
    // Otherwise it ended because its index is gone; then dropping it frees it.
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
        // Never refused: what is in use is not dying.
        match self.try_ref() {
            Some(held) => held,
            None => unreachable!("an object in use is dying"),
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
