use super::block::Block;
use super::recycle;
use std::fmt;

/// A frame that only its maker knows yet: filled from its start, then put into a map.
pub struct Frame {
    block: Block,
}

// SAFETY: the only way to its memory.
#[expect(unsafe_code, reason = "memory of its own")]
unsafe impl Send for Frame {}

impl Frame {
    /// An empty one with room for `len` bytes: 64, or the next power of two, up to
    /// [`FRAME_SIZE`](super::FRAME_SIZE).
    ///
    /// # Panics
    /// If `len` is larger than that.
    #[must_use]
    pub fn with_capacity(len: usize) -> Self {
        Self {
            block: recycle::allocate(len),
        }
    }

    /// Bytes there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }

    /// The end of the bytes filled.
    #[must_use]
    pub fn filled(&self) -> usize {
        self.block.fill.end()
    }

    /// Adds `data` behind what is there.
    ///
    /// # Panics
    /// If there is no room for it.
    pub fn push(&mut self, data: &[u8]) {
        self.put(self.filled(), data);
    }

    /// Adds `data` at byte `at`, behind what is there. What is between becomes zero, or is a gap for later.
    ///
    /// # Panics
    /// If there is no room for it.
    #[expect(unsafe_code, reason = "memory of its own")]
    pub fn put(&mut self, at: usize, data: &[u8]) {
        // SAFETY: not freed while `self` lives, and not known to anybody else.
        let put = unsafe { self.block.put(at, data) };
        assert!(put, "a frame filled twice, or beyond its end");
    }

    /// Adds zeros up to byte `at`, if less is filled.
    ///
    /// # Panics
    /// If there is no room for them.
    pub fn pad(&mut self, at: usize) {
        self.mend();
        if at > self.filled() {
            self.put(at, &[]);
        }
    }

    #[expect(unsafe_code, reason = "memory of its own")]
    fn mend(&mut self) {
        // SAFETY: not freed while `self` lives, and not known to anybody else.
        unsafe { self.block.mend() };
    }

    /// The bytes filled: gaps have become zeros then.
    #[must_use]
    #[expect(unsafe_code, reason = "memory of its own")]
    pub fn bytes(&mut self) -> &[u8] {
        self.mend();
        // SAFETY: not freed while `self` lives.
        unsafe { self.block.bytes() }
    }

    /// The memory, which from now on is the caller's to free.
    pub(super) fn into_block(self) -> Block {
        let block = self.block;
        std::mem::forget(self);
        block
    }
}

impl Drop for Frame {
    #[expect(unsafe_code, reason = "memory of its own")]
    fn drop(&mut self) {
        // SAFETY: never published, or `into_block` had forgotten it; `self` ends here.
        unsafe { recycle::free(self.block) };
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("filled", &self.filled())
            .field("capacity", &self.capacity())
            .finish()
    }
}
