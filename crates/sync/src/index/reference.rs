//! References: uses of an object that give themselves back.
#![expect(unsafe_code, reason = "a counted pointer")]

use super::doomed::Doomed;
use super::held::{Held, change};
use super::word::Word;
use crate::primitive::{AtomicU64, Ordering};
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

    #[inline]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the object lives, because this use is counted. A reference to the word alone:
        // it may be the last thing seen of an object that others then free.
        unsafe { Held::word_of(self.held) }
    }

    /// Turns it into a raw use, and returns the key by which it is given back: find the object,
    /// and call [`Held::forget`].
    #[inline]
    pub fn into_raw(self) -> u64 {
        let key = self.key();
        let this = ManuallyDrop::new(self);
        // `None`, unless the index is gone: then a doomed object is freed here.
        drop(this.step(Word::made_raw));
        key
    }

    /// Gives the use back. `Some` if it was the last one of a doomed object: the object is dying
    /// now, and the caller's to end.
    #[inline]
    #[must_use = "a doomed object that nobody ends stays in its index"]
    pub fn release(self) -> Option<Doomed<T>> {
        let this = ManuallyDrop::new(self);
        this.step(Word::released)
    }

    /// Takes the step that gives this use up; `self` must not be used after it.
    #[inline]
    fn step(&self, step: impl Fn(Word) -> Word) -> Option<Doomed<T>> {
        // Release: what this user did comes before the end of the object; Acquire: what all users
        // did, if the end is this one's to make.
        let (_, after) = change(self.word(), Ordering::AcqRel, step);
        after.is_dying().then(|| last(self.held, after)).flatten()
    }

    /// Are these uses of the same object?
    #[inline]
    #[must_use]
    pub fn ptr_eq(a: &Self, b: &Self) -> bool {
        a.held == b.held
    }
}

#[cold]
fn last<T: Send + Sync + 'static>(held: NonNull<Held<T>>, word: Word) -> Option<Doomed<T>> {
    // SAFETY: a use was counted until the step that made it dying, so it was this step.
    let doomed = unsafe { Doomed::from_end(held) };
    // Otherwise it ended because its index is gone; then dropping it frees it.
    word.is_doomed().then_some(doomed)
}

impl<T: Send + Sync + 'static> Drop for Ref<T> {
    #[inline]
    fn drop(&mut self) {
        drop(self.step(Word::released));
    }
}

impl<T: Send + Sync + 'static> Clone for Ref<T> {
    #[inline]
    fn clone(&self) -> Self {
        // Not dying, since it is in use.
        change(self.word(), Ordering::Relaxed, |word| {
            word.acquired().unwrap_or(word)
        });
        // SAFETY: the use just counted is the clone's.
        unsafe { Self::from_use(self.held) }
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
