//! The failure of a store.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::types::Errno;

/// A latch that a store closes when changes that it accepted can never become durable.
///
/// *Invariant.* While `errno != 0`, an accepted change is lost, no later one is accepted, and no
/// commit succeeds. It never becomes 0 again: the store has to be opened anew.
#[derive(Debug, Default)]
pub struct Failure {
    errno: AtomicI32,
}

impl Failure {
    /// Closes the latch; the first reason is kept.
    pub fn close_with(&self, reason: Errno) {
        // Release: pairs with the acquire load in `reason`.
        let order = (Ordering::Release, Ordering::Relaxed);
        let _ = self
            .errno
            .compare_exchange(0, reason.raw(), order.0, order.1);
    }

    /// Why nothing is accepted any more; `None` if the store has not failed.
    #[inline]
    #[must_use]
    pub fn reason(&self) -> Option<Errno> {
        match self.errno.load(Ordering::Acquire) {
            0 => None,
            errno => Some(Errno::from_raw(errno)),
        }
    }

    /// Is the latch closed?
    #[inline]
    #[must_use]
    pub fn is_latched(&self) -> bool {
        // Relaxed: either answer is right for an operation that runs beside the failure.
        self.errno.load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let failure = Failure::default();
        assert_eq!((failure.reason(), failure.is_latched()), (None, false));
        failure.close_with(Errno::ENOSPC);
        failure.close_with(Errno::EIO);
        assert_eq!(failure.reason(), Some(Errno::ENOSPC));
        assert!(failure.is_latched());
    }
}
