//! What keeps the content of slots: a guard of the epochs, or the token of the one writer.
#![expect(unsafe_code, reason = "promises about what is not freed")]

use super::word::Word;
use crate::epoch::Guard;
use crate::frame_primitive::{AtomicPtr, AtomicU64, Ordering, Own as _};

/// A token: its holder is the one writer of a map.
pub(super) struct Writing(());

impl Writing {
    /// # Safety
    /// The caller holds the map's lock as long as this lives, or owns the map exclusively. It uses
    /// the token for slots of that map and of nodes that are not published yet.
    pub(super) unsafe fn new() -> Self {
        Self(())
    }
}

/// Keeps the content of a slot from being freed while it is borrowed.
///
/// # Safety
/// Nothing that was in a slot while the value lived is freed while it still lives.
pub(super) unsafe trait Keeps {
    /// The content of the slot with this word.
    fn load(&self, word: &AtomicPtr<u8>) -> Word;
    /// The bits of a node that say which slots are not empty.
    fn used(&self, bits: &AtomicU64) -> u64;
}

// SAFETY: what leaves a slot is retired (`Owned`), and freed only after all guards of that moment.
unsafe impl Keeps for Guard {
    #[inline]
    fn load(&self, word: &AtomicPtr<u8>) -> Word {
        // Pairs with the releases in `Slot`: the node, or as many bytes of the frame as the word
        // says, were written before.
        word.load(Ordering::Acquire)
    }

    #[inline]
    fn used(&self, bits: &AtomicU64) -> u64 {
        // They promise nothing about the slots, which are loaded themselves.
        bits.load(Ordering::Relaxed)
    }
}

// SAFETY: only the writer takes anything out of a slot, and this is its token. The operations that
// do so need the lock exclusively, so nothing borrowed from it is left then.
unsafe impl Keeps for Writing {
    #[inline]
    fn load(&self, word: &AtomicPtr<u8>) -> Word {
        word.own()
    }

    #[inline]
    fn used(&self, bits: &AtomicU64) -> u64 {
        bits.own()
    }
}
