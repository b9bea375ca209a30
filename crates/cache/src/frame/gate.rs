//! What tells readers of single frames, without the size and the version, that they need neither.
//!
//! A root has a gate. It is open while no change of more than one store is under way, and then says
//! how many frames from the first on are *inside*: the owner has promised that as many whole frames
//! of bytes lie before the end of the file. Whoever finds the gate open, and in the same state after he
//! has found his frame, has found a frame of one moment in which it was inside. Writers who change
//! one frame after the other, or append, do not touch the gate, nor anything on its line: they
//! do not disturb those who read other frames.
//!
//! *Invariants.* The gate of a node that is not the root is closed, from the moment in which it is
//! the root no longer. What is said to be inside is not taken away but behind a closed gate.

use super::slot::Writing;
use crate::frame_primitive::{AtomicU64, Ordering, Own as _};

/// The lower half: frames inside, none while the gate is closed. The upper half: a number that is odd
/// as long as it is.
pub(super) struct Gate {
    word: AtomicU64,
}

/// The gate was open.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    word: u64,
}

const SHIFT: u32 = 32;

impl Gate {
    /// For a new node.
    pub(super) fn closed() -> Self {
        Self {
            word: AtomicU64::new(1 << SHIFT),
        }
    }

    /// Begins to look for frame `number`, if that is inside and the gate is open.
    #[inline]
    pub(super) fn pass(&self, number: u64) -> Option<Pass> {
        // Acquire pairs with the release in `open`: what was changed before is seen.
        let word = self.word.load(Ordering::Acquire);
        let inside = word & ((1 << SHIFT) - 1);
        // While it is closed, nothing is inside.
        (number < inside).then_some(Pass { word })
    }

    /// Has the gate not been closed since? Nor opened wider, which is as rare.
    #[inline]
    pub(super) fn holds(&self, pass: Pass) -> bool {
        // What was loaded from slots in between was stored there with a release and loaded with an
        // acquire: who saw anything of a change sees the closing that came before it.
        self.word.load(Ordering::Relaxed) == pass.word
    }

    /// Closes it, before a change of more than one store.
    pub(super) fn close(&self, _writing: &Writing) {
        let opened = self.word.own() >> SHIFT;
        if opened.is_multiple_of(2) {
            self.word.store((opened + 1) << SHIFT, Ordering::Relaxed);
        }
    }

    /// Opens it, for so many frames inside; an open one is only changed if that is worth it: for an
    /// eighth more.
    pub(super) fn open(&self, inside: u64, _writing: &Writing) {
        let word = self.word.own();
        let (opened, before) = (word >> SHIFT, word & ((1 << SHIFT) - 1));
        let inside = inside.min((1 << SHIFT) - 1);
        let is_open = opened.is_multiple_of(2);
        if inside == 0 || is_open && inside <= before + before / 8 {
            return;
        }
        let opened = if is_open {
            opened
        } else {
            opened.wrapping_add(1)
        };
        // Release: whoever passes sees what was done before, the owner's changes as well.
        self.word.store(opened << SHIFT | inside, Ordering::Release);
    }

    /// What it says is inside, if it is open.
    pub(super) fn inside(&self, _writing: &Writing) -> u64 {
        let word = self.word.own();
        if (word >> SHIFT).is_multiple_of(2) {
            word & ((1 << SHIFT) - 1)
        } else {
            0
        }
    }
}
