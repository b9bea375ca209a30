//! Lets readers of single frames do without the size and the version.
//!
//! A root has a gate. It is open while no change of more than one store is under way. Its word then
//! says how many frames from the first on are *inside*: the owner has promised that so many whole
//! frames lie before the end of the file. A reader that finds the gate open, and in the same state
//! after it has found its frame, has a frame of one moment at which it was inside. Writers that
//! change one frame at a time, or append, do not touch the gate or its cache line, so they do not
//! disturb readers of other frames.
//!
//! *Invariants.* The gate of a node that is not the root is closed, from the moment at which it
//! stops being the root. The number of frames inside shrinks only behind a closed gate.

use super::keeps::Writing;
use crate::frame_primitive::{AtomicU64, Ordering, Own as _};

/// The lower half: frames inside, 0 while the gate is closed. The upper half: a number that is odd
/// while the gate is closed.
pub(super) struct Gate {
    word: AtomicU64,
}

/// The gate's word when it was open.
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
        // Acquire pairs with the release in `open`: what was changed before is visible.
        let word = self.word.load(Ordering::Acquire);
        let inside = word & ((1 << SHIFT) - 1);
        // While it is closed, nothing is inside.
        (number < inside).then_some(Pass { word })
    }

    /// Is the gate unchanged? It changes when it is closed, and when it is opened wider, which is
    /// as rare.
    #[inline]
    pub(super) fn holds(&self, pass: Pass) -> bool {
        // Slots loaded in between were stored with a release and loaded with an acquire. So a
        // reader that saw anything of a change sees the closing before it.
        self.word.load(Ordering::Relaxed) == pass.word
    }

    /// Closes it, before a change of more than one store.
    pub(super) fn close(&self, _writing: &Writing) {
        let opened = self.word.own() >> SHIFT;
        if opened.is_multiple_of(2) {
            self.word.store((opened + 1) << SHIFT, Ordering::Relaxed);
        }
    }

    /// Opens it for `inside` frames. An open gate is changed only for at least an eighth more.
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
        // Release: a reader that passes sees what was done before, the owner's changes included.
        self.word.store(opened << SHIFT | inside, Ordering::Release);
    }

    /// The frames inside; 0 if it is closed.
    pub(super) fn inside(&self, _writing: &Writing) -> u64 {
        let word = self.word.own();
        if (word >> SHIFT).is_multiple_of(2) {
            word & ((1 << SHIFT) - 1)
        } else {
            0
        }
    }
}
