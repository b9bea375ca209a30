//! A pointer that one thread replaces while others follow it.
#![expect(unsafe_code, reason = "shared ownership by the rules of epochs")]

use crate::epoch::{self, Guard};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A cell that holds a boxed value or nothing. A reader sees a whole value without a lock; a
/// replaced value is dropped once no reader can see it.
///
/// *Invariant.* The pointer is null or comes from `Box::into_raw`, and no two cells hold the same.
pub struct Published<T> {
    value: AtomicPtr<T>,
    owns: PhantomData<Box<T>>,
}

// SAFETY: it hands out `&T` to several threads (Sync) and drops `T` on any of them (Send).
unsafe impl<T: Send + Sync> Sync for Published<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for Published<T> {}

impl<T> Published<T> {
    /// Nothing yet.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            value: AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        }
    }

    /// Holding this value.
    #[must_use]
    pub fn new(value: Box<T>) -> Self {
        Self {
            value: AtomicPtr::new(Box::into_raw(value)),
            owns: PhantomData,
        }
    }

    /// The current value.
    #[inline]
    pub fn load<'g>(&'g self, _guard: &'g Guard) -> Option<&'g T> {
        // Acquire: the value was built before it was published.
        let value = self.value.load(Ordering::Acquire);
        // SAFETY: null or live. The value was in the cell under this guard, so it is dropped only
        // after the guard, and `&'g self` excludes that the cell is dropped.
        unsafe { value.as_ref() }
    }

    /// Is there a value?
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.value.load(Ordering::Relaxed).is_null()
    }

    /// The value; `&mut self` excludes readers.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: null or a live box, and `&mut self` excludes every other access.
        unsafe { self.value.get_mut().as_mut() }
    }

    /// Takes the value out; `&mut self` excludes readers.
    pub fn take_mut(&mut self) -> Option<Box<T>> {
        let value = std::mem::replace(self.value.get_mut(), ptr::null_mut());
        // SAFETY: null or from a box, taken out of the only cell that had it. No reader is left
        // that could hold a reference, since references borrow the cell.
        (!value.is_null()).then(|| unsafe { Box::from_raw(value) })
    }
}

impl<T: Send + Sync + 'static> Published<T> {
    /// Replaces the value. Returns whether there was one.
    pub fn replace(&self, value: Option<Box<T>>) -> bool {
        let new = value.map_or(ptr::null_mut(), Box::into_raw);
        // Release: readers of `new` see it built.
        let old = self.value.swap(new, Ordering::AcqRel);
        retire(old)
    }

    /// Replaces the value if it is still `current`, and returns the new one.
    ///
    /// # Errors
    /// The box, when the cell holds something else by now.
    pub fn compare_exchange<'g>(
        &'g self,
        current: Option<&'g T>,
        value: Box<T>,
        _guard: &'g Guard,
    ) -> Result<&'g T, Box<T>> {
        let old = current.map_or(ptr::null_mut(), |current| ptr::from_ref(current).cast_mut());
        let new = Box::into_raw(value);
        match self
            .value
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(old) => {
                retire(old);
                // SAFETY: in the cell under this guard, so it lives as long as the guard.
                Ok(unsafe { &*new })
            }
            // SAFETY: made from a box above and never published.
            Err(_) => Err(unsafe { Box::from_raw(new) }),
        }
    }
}

fn retire<T: Send + Sync + 'static>(old: *mut T) -> bool {
    if old.is_null() {
        return false;
    }
    // The pointer and not the box: readers may still look at its target. SAFETY: from a box, just
    // taken out of the only cell that had it, so threads that pin from now on cannot reach it. `T`
    // may be dropped on any thread.
    unsafe { epoch::retire_with(old.cast(), free::<T>) };
    true
}

/// # Safety
/// `value` comes from a `Box<T>`, and no thread can reach it any more.
unsafe fn free<T>(value: *mut ()) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

impl<T> Default for Published<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        drop(self.take_mut());
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = epoch::pin();
        f.debug_tuple("Published")
            .field(&self.load(&guard))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn readers_see_whole_values_while_they_are_replaced() {
        let cell = Published::new(Box::new([0_u64; 8]));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let guard = epoch::pin();
                        let value = cell.load(&guard).expect("never empty");
                        assert!(value.iter().all(|word| *word == value[0]), "{value:?}");
                    }
                });
            }
            for round in 1..20_000 {
                assert!(cell.replace(Some(Box::new([round; 8]))));
            }
            done.store(true, Ordering::Relaxed);
        });
        epoch::synchronize();
    }

    #[test]
    fn an_exchange_against_another_value_fails_and_gives_the_box_back() {
        let cell = Published::empty();
        let guard = epoch::pin();
        let first = cell.compare_exchange(None, Box::new(1), &guard).unwrap();
        assert_eq!(
            *cell
                .compare_exchange(None, Box::new(2), &guard)
                .unwrap_err(),
            2
        );
        assert_eq!(
            *cell
                .compare_exchange(Some(first), Box::new(3), &guard)
                .unwrap(),
            3
        );
        assert_eq!(*first, 1, "still there under the guard");
    }

    #[test]
    fn a_cell_to_oneself_gives_its_value_back() {
        let mut cell = Published::new(Box::new(5));
        *cell.get_mut().unwrap() += 1;
        assert_eq!(cell.take_mut(), Some(Box::new(6)));
        assert!(cell.is_empty() && !cell.replace(None));
    }
}
