//! Objects on the heap that no other thread can see yet.
#![expect(
    unsafe_code,
    reason = "the index holds what comes of it as plain pointers"
)]

use super::held::Held;
use super::shares::Sharing;
use super::word::Word;
use crate::primitive::{AtomicU64, Ordering};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

/// An object to be inserted into an [`Index`](super::Index), on the heap, with one use.
///
/// It is built where it stays. Moving an object right after it was written word by word stalls: a
/// wide load cannot begin before the narrower stores under it have reached the cache.
pub struct Prepared<T: Send + Sync + 'static>(Box<Held<T>>);

impl<T: Send + Sync + 'static> Prepared<T> {
    /// Moves `value` to the heap.
    #[inline(always)]
    pub fn new(value: T) -> Self {
        Self::with(|| value)
    }

    /// As [`new`](Self::new), with a value that `make` builds in place.
    #[inline(always)]
    pub fn with(make: impl FnOnce() -> T) -> Self {
        let place = Box::<Held<T>>::new_uninit();
        // Before the value: it would have to be kept in memory during `make`.
        let sharing = Sharing::begun();
        Self(Box::write(place, Held::new(sharing, make())))
    }

    /// The value alone.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0.value
    }

    /// With the raw uses that it had when it last left the index.
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

    /// To be shared from now on, with this key.
    #[inline]
    pub(super) fn leak(mut self, key: u64) -> NonNull<Held<T>> {
        self.0.key = key;
        let held = NonNull::from(Box::leak(self.0));
        // References are made from shared borrows, but `free` needs the whole object back.
        let _ = held.as_ptr().expose_provenance();
        held
    }

    /// The object back that was leaked.
    ///
    /// # Safety
    /// `held` comes from [`leak`](Self::leak), and no other thread has seen it.
    pub(super) unsafe fn from_raw(held: NonNull<Held<T>>) -> Self {
        // SAFETY: it came from a box, and the caller has exclusive access.
        Self(unsafe { Box::from_raw(held.as_ptr()) })
    }
}

impl<T: Send + Sync + 'static> Deref for Prepared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> fmt::Debug for Prepared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prepared").field(&**self).finish()
    }
}
