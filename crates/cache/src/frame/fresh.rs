use super::block::Block;
use super::garbage;

/// A frame that only its maker knows: filled, then put into a map.
pub struct Frame {
    block: Block,
}

// SAFETY: the only pointer to its memory.
#[expect(unsafe_code, reason = "memory of its own")]
unsafe impl Send for Frame {}

impl Frame {
    /// An empty frame with room for `len` bytes: 64, or the next power of two, up to
    /// [`FRAME_SIZE`](super::FRAME_SIZE).
    ///
    /// # Panics
    /// If `len` is larger than that.
    #[must_use]
    pub fn with_capacity(len: usize) -> Self {
        Self {
            block: Block::allocate(Block::class_for(len)),
        }
    }

    /// Its capacity in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }

    /// The end of the bytes filled.
    #[must_use]
    pub fn filled(&self) -> usize {
        self.block.fill.end()
    }

    /// Appends `data`.
    ///
    /// # Panics
    /// If there is no room for it.
    pub fn push(&mut self, data: &[u8]) {
        self.put(self.filled(), data);
    }

    /// Adds `data` at byte `at`, after the filled bytes. What lies between becomes zero, or is a
    /// gap for later.
    ///
    /// # Panics
    /// If there is no room for it.
    #[expect(unsafe_code, reason = "memory of its own")]
    pub fn put(&mut self, at: usize, data: &[u8]) {
        // SAFETY: not freed while `self` lives, and no other thread knows it.
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
        // SAFETY: not freed while `self` lives, and no other thread knows it.
        unsafe { self.block.mend() };
    }

    /// The bytes filled; gaps become zeros first.
    #[must_use]
    #[expect(unsafe_code, reason = "memory of its own")]
    pub fn bytes(&mut self) -> &[u8] {
        self.mend();
        // SAFETY: not freed while `self` lives.
        unsafe { self.block.bytes() }
    }

    /// The memory; the caller must free it.
    pub(super) fn into_block(self) -> Block {
        let block = self.block;
        std::mem::forget(self);
        block
    }
}

impl Drop for Frame {
    #[expect(unsafe_code, reason = "memory of its own")]
    fn drop(&mut self) {
        // SAFETY: never published, and not given away by `into_block`; `self` ends here.
        unsafe { garbage::free(self.block) };
    }
}
