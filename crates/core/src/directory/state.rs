//! Where the names of a directory are: one word, which readers without locks compare.

use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Where the names of a directory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the store alone.
    Unloaded,
    /// All of them in memory: what is not there does not exist.
    Whole,
    /// Some of them in memory: of the others the store knows.
    Partial,
    /// All of them in memory, as they were when the store was asked last. Others change it: they are believed only while that
    /// answer [holds](crate::shared).
    Dated,
}

const PLACE_BITS: u32 = 0b11;
const WHOLE: u32 = 0b01;
const PARTIAL: u32 = 0b10;
const DATED: u32 = 0b11;
const DEAD: u32 = 0b100;
/// Above the bits is the number of changes of the place.
const GENERATION: u32 = 0b1000;

/// The word as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen(u32);

impl Seen {
    /// The place of the names at that moment.
    pub(crate) fn place(self) -> Place {
        match self.0 & PLACE_BITS {
            WHOLE => Place::Whole,
            PARTIAL => Place::Partial,
            DATED => Place::Dated,
            _ => Place::Unloaded,
        }
    }
}

/// The word: place of the names, whether the directory was removed, and a generation.
///
/// The place changes before the names leave memory, and after they came. A reader that looked for a name in the catalog and
/// found none believes the absence only if the word says [`Place::Whole`] and was the same before.
#[derive(Debug)]
pub(super) struct State(AtomicU32);

impl State {
    pub(super) fn new(place: Place) -> Self {
        Self(AtomicU32::new(bits(place)))
    }

    #[inline]
    pub(super) fn see(&self) -> Seen {
        // Acquire pairs with the release in `set`: all names that came before are seen.
        Seen(self.0.load(Ordering::Acquire) & !DEAD)
    }

    /// Did the place not change since?
    #[inline]
    pub(super) fn is_still(&self, seen: Seen) -> bool {
        // Loads of the catalog come before that of the word: a reader that missed a name because the catalog was swapped
        // sees the word that was stored before the swap.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) & !DEAD == seen.0
    }

    /// Changes the place. The names are locked.
    pub(super) fn set(&self, place: Place) {
        let word = self.0.load(Ordering::Relaxed);
        let next = (word & !PLACE_BITS | bits(place)).wrapping_add(GENERATION);
        self.0.store(next, Ordering::Release);
        // The word comes before the stores that take names out.
        fence(Ordering::SeqCst);
    }

    /// The directory was removed. The names are locked.
    pub(super) fn free(&self) {
        self.0.fetch_or(DEAD, Ordering::Release);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.0.load(Ordering::Acquire) & DEAD != 0
    }
}

fn bits(place: Place) -> u32 {
    match place {
        Place::Unloaded => 0,
        Place::Whole => WHOLE,
        Place::Partial => PARTIAL,
        Place::Dated => DATED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_came_back_is_not_the_one_that_was_seen() {
        let state = State::new(Place::Whole);
        let seen = state.see();
        assert!(state.is_still(seen) && seen.place() == Place::Whole);
        state.set(Place::Partial);
        assert!(!state.is_still(seen) && state.see().place() == Place::Partial);
        state.set(Place::Whole);
        assert!(!state.is_still(seen) && state.see().place() == Place::Whole);
        let seen = state.see();
        state.free();
        assert!(state.is_dead() && state.is_still(seen));
        state.set(Place::Unloaded);
        assert!(state.is_dead() && state.see().place() == Place::Unloaded);
    }
}
