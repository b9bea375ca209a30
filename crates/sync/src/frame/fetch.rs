//! Having fetched what a write will come to: its place in the tree, and the bytes there.
//!
//! In a large file that is written here and there each of these is a wait for memory, one after the other. Whoever
//! knows the offset before he has to do anything else lets them wait for him.

use super::FRAME_SIZE;
use super::lock::FramesLock;
use super::node::{Node, place};
use crate::prefetch::prefetch;
use std::ops::Range;

/// Bytes that are fetched at once.
const LINE: usize = 64;

impl<X: Send + 'static> FramesLock<'_, X> {
    /// Has the place of frame `number` fetched, if there is a leaf for it. Nothing is waited for.
    #[inline]
    pub fn fetch_place(&self, number: u64) {
        if let Some(leaf) = self.leaf_ahead(number) {
            prefetch(leaf);
            prefetch(&raw const leaf.slots[place(number, 0)]);
        }
    }

    /// Has bytes of frame `number` fetched, as far as it has room for them; its place is waited for. `true`: it
    /// does not end where they begin; if there is none, the answer may be either.
    #[inline]
    pub fn fetch_bytes(&self, number: u64, bytes: Range<usize>) -> bool {
        let leaf = self.leaf_ahead(number);
        let found = leaf.map(|leaf| leaf.slots[place(number, 0)].find(&self.writing));
        let Some(frame) = found.and_then(|found| found.frame()) else {
            return false;
        };
        let end = bytes.end.min(frame.capacity()).min(FRAME_SIZE);
        let start = frame.block().start.as_ptr();
        for at in (bytes.start..end).step_by(LINE) {
            prefetch(start.wrapping_add(at));
        }
        frame.block().fill.as_first() != Some(bytes.start)
    }

    /// The leaf on the way to `number`, of which nothing was looked at.
    #[inline]
    fn leaf_ahead(&self, number: u64) -> Option<&Node<X>> {
        self.map
            .root
            .find(&self.writing)
            .leaf(number, &self.writing)
    }
}
