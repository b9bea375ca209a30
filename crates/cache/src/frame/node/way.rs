//! The path from a root to a frame, by the words in slots alone.
//!
//! Each load of a slot depends on the one before, and nothing else is on that path. Of each node
//! only one slot is loaded, and of the last one also its base.
#![expect(unsafe_code, reason = "what words say, for as long as it is kept")]

use super::{Node, Slot, place};
use crate::frame::keeps::Keeps;
use crate::frame::stored::Stored;
use crate::frame::word::{self, Word};
use std::marker::PhantomData;

/// The content of a slot, not yet decoded.
pub(crate) struct Found<'g, X> {
    word: Word,
    kept: PhantomData<&'g Node<X>>,
}

impl<X> Slot<X> {
    /// Its content, to be followed without reading nodes.
    #[inline]
    pub(crate) fn find<'g>(&'g self, keeps: &'g impl Keeps) -> Found<'g, X> {
        // SAFETY: what is in a slot is live, and kept for `'g`.
        unsafe { Found::new(keeps.load(&self.word)) }
    }
}

/// A node, and its shift as the word that led to it says.
pub(crate) struct Way<'g, X> {
    pub(crate) node: &'g Node<X>,
    pub(crate) shift: u32,
}

impl<'g, X> Found<'g, X> {
    /// # Safety
    /// What the word leads to was in a slot, and is not freed during `'g`.
    #[inline(always)]
    pub(crate) unsafe fn new(word: Word) -> Self {
        Self {
            word,
            kept: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn is_node(&self) -> bool {
        word::is_node(self.word)
    }

    /// The node. (An `Option` would make the compiler test the node's address, which is known a
    /// step later than the word.)
    ///
    /// # Safety
    /// It [is a node](Self::is_node).
    #[inline(always)]
    pub(crate) unsafe fn way(&self) -> Way<'g, X> {
        let (node, shift) = word::node::<Node<X>>(self.word);
        // SAFETY: a node that was in a slot, so it is live, and kept for `'g`; nodes are only
        // shared.
        let node = unsafe { &*node };
        Way { node, shift }
    }

    /// The shift of the node.
    #[cfg(test)]
    pub(crate) fn shift(&self) -> u32 {
        word::node::<Node<X>>(self.word).1
    }

    /// The frame, if it is one.
    #[inline(always)]
    pub(crate) fn frame(&self) -> Option<Stored<'g>> {
        // SAFETY: in a slot, and kept for `'g`.
        word::as_frame(self.word).map(|block| unsafe { Stored::new(block) })
    }

    /// The frame `number`, if this content of the root is that frame or a node above it.
    ///
    /// Only the last node is asked whether the number has a slot there: a path of slots for other
    /// numbers ends in a node that does not cover this one.
    #[inline(always)]
    pub(crate) fn below(self, number: u64, keeps: &'g impl Keeps) -> Option<Stored<'g>> {
        if !self.is_node() {
            return self.frame().filter(|_| number == 0);
        }
        // SAFETY: `is_node` was true.
        unsafe { self.way() }.frame(number, keeps)
    }
}

impl<'g, X> Found<'g, X> {
    /// The leaf on the path to `number`. The caller has to check that it covers the number.
    #[inline]
    pub(crate) fn leaf(mut self, number: u64, keeps: &'g impl Keeps) -> Option<&'g Node<X>> {
        while self.is_node() {
            // SAFETY: `is_node` was true.
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
    pub(crate) fn frame(mut self, number: u64, keeps: &'g impl Keeps) -> Option<Stored<'g>> {
        loop {
            let found = self.node.slots[place(number, self.shift)].find(keeps);
            if !found.is_node() {
                return found.frame().filter(|_| self.node.spans_as_leaf(number));
            }
            // SAFETY: `is_node` was true.
            self = unsafe { found.way() };
        }
    }

    /// The leaf with a slot for `number`, and the frame there.
    #[inline(always)]
    pub(crate) fn near(
        mut self,
        number: u64,
        keeps: &'g impl Keeps,
    ) -> Option<(&'g Node<X>, Stored<'g>)> {
        while self.shift != 0 {
            let found = self.node.slots[place(number, self.shift)].find(keeps);
            if !found.is_node() {
                return None;
            }
            // SAFETY: `is_node` was true.
            self = unsafe { found.way() };
        }
        let leaf = self.node;
        let found = leaf.slots[place(number, 0)].find(keeps);
        let frame = found.frame().filter(|_| leaf.spans_as_leaf(number))?;
        Some((leaf, frame))
    }
}
