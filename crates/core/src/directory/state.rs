//! The place of the names of a directory: one word that lockless readers compare.

use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Where the names of a directory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residency {
    /// Only in the store.
    Unloaded,
    /// All in memory: a name that is not there does not exist.
    Whole,
    /// Some in memory; only the store knows the others.
    Partial,
    /// All in memory, as of the last read of a store that others change. Valid only while that
    /// answer [holds](crate::shared).
    Dated,
}

const RESIDENCY_BITS: u32 = 0b11;
const WHOLE: u32 = 0b01;
const PARTIAL: u32 = 0b10;
const DATED: u32 = 0b11;
const DEAD: u32 = 0b100;
/// The bits from here on count the changes of the place.
const GENERATION: u32 = 0b1000;

/// The word at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen(u32);

impl Seen {
    /// The place at that moment.
    pub(crate) fn place(self) -> Residency {
        match self.0 & RESIDENCY_BITS {
            WHOLE => Residency::Whole,
            PARTIAL => Residency::Partial,
            DATED => Residency::Dated,
            _ => Residency::Unloaded,
        }
    }
}

/// The place of the names, whether the directory was removed, and a generation.
///
/// The place changes before names leave memory, and after they arrived. A reader that missed a name
/// in the catalog may report it absent only if the word says [`Residency::Whole`] and is the same
/// before and after the search.
#[derive(Debug)]
pub(super) struct State(AtomicU32);

impl State {
    pub(super) fn new(place: Residency) -> Self {
        Self(AtomicU32::new(bits(place)))
    }

    #[inline]
    pub(super) fn see(&self) -> Seen {
        // Acquire pairs with the release in `set`: the reader sees all names that arrived before.
        Seen(self.0.load(Ordering::Acquire) & !DEAD)
    }

    /// Is the place unchanged since `seen`?
    #[inline]
    pub(super) fn is_still(&self, seen: Seen) -> bool {
        // Orders the loads of the catalog before this load. A reader that missed a name because the
        // catalog was swapped sees the word stored before the swap.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) & !DEAD == seen.0
    }

    /// Sets the place. The caller holds the lock of the names.
    pub(super) fn set(&self, place: Residency) {
        let word = self.0.load(Ordering::Relaxed);
        let next = (word & !RESIDENCY_BITS | bits(place)).wrapping_add(GENERATION);
        self.0.store(next, Ordering::Release);
        // Orders this store before the stores that remove names.
        fence(Ordering::SeqCst);
    }

    /// Marks the directory as removed. The caller holds the lock of the names.
    pub(super) fn free(&self) {
        self.0.fetch_or(DEAD, Ordering::Release);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.0.load(Ordering::Acquire) & DEAD != 0
    }
}

fn bits(place: Residency) -> u32 {
    match place {
        Residency::Unloaded => 0,
        Residency::Whole => WHOLE,
        Residency::Partial => PARTIAL,
        Residency::Dated => DATED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_came_back_is_not_the_one_that_was_seen() {
        let state = State::new(Residency::Whole);
        let seen = state.see();
        assert!(state.is_still(seen) && seen.place() == Residency::Whole);
        state.set(Residency::Partial);
        assert!(!state.is_still(seen) && state.see().place() == Residency::Partial);
        state.set(Residency::Whole);
        assert!(!state.is_still(seen) && state.see().place() == Residency::Whole);
        let seen = state.see();
        state.free();
        assert!(state.is_dead() && state.is_still(seen));
        state.set(Residency::Unloaded);
        assert!(state.is_dead() && state.see().place() == Residency::Unloaded);
    }
}
