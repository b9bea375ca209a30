use super::block::Block;
use super::recycle;
use super::slot::Stored;
use crate::frame_primitive::owners;
use std::fmt;

/// A frame as it was at some moment, kept for as long as anybody wants, whatever becomes of it in its map.
///
/// *Invariant.* It is one of the frame's owners: the memory is freed when the last of them is gone. The bytes
/// that were filled when it was made never change; those behind them are not its business.
pub struct Shared {
    block: Block,
}

// SAFETY: bytes that nobody changes, and a count that any thread may lower.
#[expect(unsafe_code, reason = "memory that is only read")]
unsafe impl Send for Shared {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "memory that is only read")]
unsafe impl Sync for Shared {}

impl Stored<'_> {
    /// Keeps the frame as it is now. `None`: it is too small to be worth it, and has to be copied.
    #[must_use]
    pub fn share(self) -> Option<Shared> {
        let block = self.block();
        recycle::can_be_shared(block).then(|| {
            // Its owner, whoever that is, does not give it up while it is borrowed from a slot.
            owners::join(block.start);
            Shared { block }
        })
    }
}

impl Shared {
    /// The bytes filled; behind them the frame was zero.
    #[inline]
    #[must_use]
    #[expect(unsafe_code, reason = "memory that is only read")]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: not freed while `self` is one of its owners; those bytes were initialised before
        // whoever shared it learned of them, and are not written again.
        unsafe { self.block.bytes() }
    }

    /// Forgets bytes from `len` on: they count as zeros.
    pub fn truncate(&mut self, len: usize) {
        self.block.filled = self.block.filled.min(len);
    }
}

impl Clone for Shared {
    fn clone(&self) -> Self {
        owners::join(self.block.start);
        Self { block: self.block }
    }
}

impl Drop for Shared {
    #[expect(unsafe_code, reason = "one of the owners goes")]
    fn drop(&mut self) {
        // SAFETY: `join` counted `self`, which ends here.
        unsafe { recycle::free(self.block) };
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("filled", &self.block.filled)
            .finish_non_exhaustive()
    }
}
