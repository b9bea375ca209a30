//! Objects that nobody knows yet, in the place where they will be.
#![expect(
    unsafe_code,
    reason = "the index holds what comes of it as plain pointers"
)]

use super::held::Held;
use super::shares::Sharing;
use super::word::Word;
use crate::prefetch::prefetch_to_fill;
use crate::primitive::{AtomicU64, Ordering};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

/// An object on its way into an [`Index`](super::Index), on the heap, with one use.
///
/// It is built where it stays: an object that is moved right after it was written, word by word, is
/// waited for (a load that is wider than the stores before it cannot begin before these have reached
/// the cache).
pub struct Prepared<T: Send + Sync + 'static>(Box<Held<T>>);

impl<T: Send + Sync + 'static> Prepared<T> {
    /// Puts it on the heap.
    #[inline(always)]
    pub fn new(value: T) -> Self {
        Self::with(|| value)
    }

    /// As [`new`](Self::new), of what `make` makes in the place that was got for it.
    #[inline(always)]
    pub fn with(make: impl FnOnce() -> T) -> Self {
        let place = Box::<Held<T>>::new_uninit();
        // Where the next one will mostly be.
        prefetch_to_fill(place.as_ptr().wrapping_add(1), size_of::<Held<T>>());
        // Before the value: what is made in between would have it wait elsewhere.
        let sharing = Sharing::begun();
        Self(Box::write(place, Held::unborn(sharing, make())))
    }

    /// The value alone.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0.into_value()
    }

    /// With so many raw uses, which it had before it left the index the last time.
    #[inline]
    #[must_use]
    pub fn with_raw_uses(mut self, raw: u64) -> Self {
        if raw > 0 {
            self.0.word = AtomicU64::new(self.word().with_raw_uses(raw).0);
        }
        self
    }

    fn word(&self) -> Word {
        Word(self.0.word.load(Ordering::Relaxed))
    }

    /// As [`leak`](Self::leak), without its use.
    #[inline]
    pub(super) fn leak_unused(mut self, key: u64) -> NonNull<Held<T>> {
        self.0.word = AtomicU64::new(self.word().without_first_use().0);
        self.0.forget_tally();
        self.leak(key)
    }

    /// To be shared from now on, under this number.
    #[inline]
    pub(super) fn leak(mut self, key: u64) -> NonNull<Held<T>> {
        self.0.key = key;
        let held = NonNull::from(Box::leak(self.0));
        // References are made from shared borrows; `free` needs the whole object back.
        let _ = held.as_ptr().expose_provenance();
        held
    }

    /// What was leaked.
    ///
    /// # Safety
    /// It comes from [`leak`](Self::leak) or [`leak_unused`](Self::leak_unused), and was not shared with anybody since.
    pub(super) unsafe fn from_raw(held: NonNull<Held<T>>) -> Self {
        // SAFETY: it came from a box, and the caller has it to himself.
        Self(unsafe { Box::from_raw(held.as_ptr()) })
    }
}

impl<T: Send + Sync + 'static> Deref for Prepared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.value()
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> fmt::Debug for Prepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prepared").field(&**self).finish()
    }
}
