//! The way from a root to a frame, by the words in slots alone.
//!
//! Each load on it needs the one before; all else stands beside them, and of the nodes nothing is loaded but a slot
//! each, and where the last one begins.
#![expect(unsafe_code, reason = "what words say, for as long as it is kept")]

use super::node::{Node, place};
use super::slot::{Keeps, Stored};
use super::word::{self, Word};
use std::marker::PhantomData;

/// What a slot holds, not yet looked at.
pub(super) struct Found<'g, X> {
    word: Word,
    kept: PhantomData<&'g Node<X>>,
}

/// A node, and its shift as the word says that led to it.
pub(super) struct Way<'g, X> {
    pub(super) node: &'g Node<X>,
    pub(super) shift: u32,
}

impl<'g, X> Found<'g, X> {
    /// # Safety
    /// What the word says was in a slot, and is not freed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn new(word: Word) -> Self {
        Self {
            word,
            kept: PhantomData,
        }
    }

    #[inline(always)]
    pub(super) fn is_node(&self) -> bool {
        word::is_node(self.word)
    }

    /// The way on from a node. (No `Option`: the compiler would look for the answer in the node's address, and not
    /// in the word, where it is found a step sooner.)
    ///
    /// # Safety
    /// It [is one](Self::is_node).
    #[inline(always)]
    pub(super) unsafe fn way(&self) -> Way<'g, X> {
        let (node, shift) = word::node::<Node<X>>(self.word);
        // SAFETY: a node that was in a slot, hence live, and kept for `'g`; nodes are only shared.
        let node = unsafe { &*node };
        Way { node, shift }
    }

    /// The shift of the node that it is.
    #[cfg(test)]
    pub(super) fn shift(&self) -> u32 {
        word::node::<Node<X>>(self.word).1
    }

    /// The frame, if it is no node and not nothing.
    #[inline(always)]
    pub(super) fn frame(&self) -> Option<Stored<'g>> {
        // SAFETY: in a slot, and kept for `'g`.
        word::as_frame(self.word).map(|block| unsafe { Stored::new(block) })
    }

    /// The frame `number`, if what was found, at the root, is that frame or a node above it.
    ///
    /// Whether the number has a place there is asked of the last node only: whoever followed a slot for other
    /// numbers comes to one that has none for this.
    #[inline(always)]
    pub(super) fn below(self, number: u64, keeps: &'g impl Keeps) -> Option<Stored<'g>> {
        if !self.is_node() {
            return self.frame().filter(|_| number == 0);
        }
        // SAFETY: just asked.
        unsafe { self.way() }.frame(number, keeps)
    }
}

impl<'g, X> Found<'g, X> {
    /// The leaf that is on the way to `number`, of which nothing was looked at: that it has a place for the number
    /// is not said.
    #[inline]
    pub(super) fn leaf(mut self, number: u64, keeps: &'g impl Keeps) -> Option<&'g Node<X>> {
        while self.is_node() {
            // SAFETY: just asked.
            let way = unsafe { self.way() };
            if way.shift == 0 {
                return Some(way.node);
            }
            self = way.node.slots[place(number, way.shift)].find(keeps);
        }
        None
    }
}

impl<'g, X> Way<'g, X> {
    /// The frame `number`, if it is below this node.
    #[inline(always)]
    pub(super) fn frame(mut self, number: u64, keeps: &'g impl Keeps) -> Option<Stored<'g>> {
        loop {
            let found = self.node.slots[place(number, self.shift)].find(keeps);
            if !found.is_node() {
                return found.frame().filter(|_| self.node.spans_as_leaf(number));
            }
            // SAFETY: just asked.
            self = unsafe { found.way() };
        }
    }

    /// The leaf that has a place for `number`, and the frame there.
    #[inline(always)]
    pub(super) fn near(
        mut self,
        number: u64,
        keeps: &'g impl Keeps,
    ) -> Option<(&'g Node<X>, Stored<'g>)> {
        while self.shift != 0 {
            let found = self.node.slots[place(number, self.shift)].find(keeps);
            if !found.is_node() {
                return None;
            }
            // SAFETY: just asked.
            self = unsafe { found.way() };
        }
        let leaf = self.node;
        let found = leaf.slots[place(number, 0)].find(keeps);
        let frame = found.frame().filter(|_| leaf.spans_as_leaf(number))?;
        Some((leaf, frame))
    }
}
