//! Garbage: values that wait for their destructors.
#![expect(unsafe_code, reason = "values of any type in one list")]

/// From one epoch to the next: the lowest bit is free for other use.
pub(super) const STEP: u64 = 2;

/// A value to be dropped later, its type forgotten.
pub(super) struct Deferred {
    value: *mut (),
    drop: unsafe fn(*mut ()),
}

// SAFETY: made from `Box<T>` with `T: Send` only; it is the box under another name.
unsafe impl Send for Deferred {}

unsafe fn drop_box<T>(value: *mut ()) {
    // SAFETY: `Deferred::free` made `value` from a `Box<T>` with this `T`, and it is run once.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

impl Deferred {
    pub(super) fn free<T: Send + 'static>(value: Box<T>) -> Self {
        Self {
            value: Box::into_raw(value).cast(),
            drop: drop_box::<T>,
        }
    }

    /// Garbage that is not a box: `drop` is called once with `value`, on any thread.
    ///
    /// # Safety
    /// `drop(value)` must be sound on any thread, once, at any later time.
    pub(super) unsafe fn with(value: *mut (), drop: unsafe fn(*mut ())) -> Self {
        Self { value, drop }
    }

    pub(super) fn run(self) {
        // SAFETY: by construction `drop` fits `value`; `self` is consumed, so it is run once.
        unsafe { (self.drop)(self.value) };
    }
}

/// Values that became garbage together.
pub(super) type Bag = Vec<Deferred>;

/// A bag with the epoch in which it was closed.
pub(super) struct Sealed {
    pub(super) epoch: u64,
    pub(super) bag: Bag,
}

impl Sealed {
    /// May it be dropped in this epoch?
    pub(super) fn is_due(&self, epoch: u64) -> bool {
        epoch >= self.epoch + 2 * STEP
    }
}
