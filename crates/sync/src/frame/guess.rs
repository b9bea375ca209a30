//! A guess at where the way through a tree ends, so that nobody waits for the way.
//!
//! Each load on the way needs the one before, and the bytes of a frame need them all. Whoever reads a file reads near to where
//! he read just before, so he mostly comes to the same leaf again. The processor goes on with the leaf of the last time
//! while it still walks, as long as that turns out to be right: it guesses which way a comparison goes, and behind that one
//! stands the old address, not the one that was found. What is used is never anything but the leaf that was found.
#![expect(unsafe_code, reason = "an address in two variables")]

use std::cell::Cell;
use std::ptr;

thread_local! {
    /// The address of the leaf that the calling thread came to last.
    static LATEST: Cell<usize> = const { Cell::new(0) };
}

/// The same leaf, by an address that the processor may have before it has found it.
#[inline(always)]
pub(super) fn anticipate<T>(leaf: &T) -> &T {
    let found = ptr::from_ref(leaf).expose_provenance();
    LATEST.with(|latest| {
        if latest.get() == found {
            // SAFETY: a cell of the calling thread's. Volatile, because a compiler that knows both to be equal may take
            // the one that was found.
            let guessed = unsafe { latest.as_ptr().read_volatile() };
            // SAFETY: nobody stored there since the comparison: it is the address of `leaf`, which was exposed above.
            unsafe { &*ptr::with_exposed_provenance(guessed) }
        } else {
            latest.set(found);
            leaf
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_the_first_time_and_the_next_and_beside_another() {
        let (one, other) = ([1_u8; 64], [2_u8; 64]);
        for _ in 0..3 {
            assert!(ptr::eq(anticipate(&one), &raw const one));
            assert!(ptr::eq(anticipate(&one), &raw const one));
            assert!(ptr::eq(anticipate(&other), &raw const other));
        }
    }
}
