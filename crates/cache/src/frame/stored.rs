//! A frame in a map, as a slot shows it.
#![expect(unsafe_code, reason = "bytes of a frame, for as long as it is kept")]

use super::block::Block;
use std::marker::PhantomData;

/// A frame that a slot holds.
#[derive(Clone, Copy)]
pub struct Stored<'g> {
    block: Block,
    kept: PhantomData<&'g [u8]>,
}

impl<'g> Stored<'g> {
    /// # Safety
    /// The frame was found in a slot, and is kept for `'g`.
    #[inline]
    pub(super) unsafe fn new(block: Block) -> Self {
        Self {
            block,
            kept: PhantomData,
        }
    }

    /// The bytes filled; after them the frame is zero. Empty for a broken frame, which only
    /// [`show`](super::FramesLock::show) returns.
    #[inline]
    #[must_use]
    pub fn bytes(self) -> &'g [u8] {
        // SAFETY: found in a slot, and kept for `'g`. These bytes were initialised before the word
        // that counts them was stored, and are not written again.
        unsafe { self.block.bytes() }
    }

    /// Are there gaps between the filled bytes?
    #[inline]
    pub(super) fn is_broken(self) -> bool {
        self.block.fill.as_first().is_none()
    }

    /// Its capacity in bytes.
    #[must_use]
    pub fn capacity(self) -> usize {
        self.block.capacity()
    }

    /// How many bytes are filled.
    #[inline]
    #[must_use]
    pub fn filled(self) -> usize {
        self.block.fill.count()
    }

    pub(super) fn block(self) -> Block {
        self.block
    }
}
