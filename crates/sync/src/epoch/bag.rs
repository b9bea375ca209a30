//! Garbage: values that wait for their destructors.
#![expect(unsafe_code, reason = "values of any type in one list")]

/// The distance of two epochs: the lowest bit of an epoch is free.
pub(super) const STEP: u64 = 2;

/// A value to be dropped later, with its type erased.
pub(super) struct Deferred {
    value: *mut (),
    drop: unsafe fn(*mut ()),
}

// SAFETY: by the contract of `with`.
unsafe impl Send for Deferred {}

impl Deferred {
    /// Calls `drop(value)` later.
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

/// Values that were retired by one thread.
pub(super) type Bag = Vec<Deferred>;

/// A bag with the epoch in which it was sealed.
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
