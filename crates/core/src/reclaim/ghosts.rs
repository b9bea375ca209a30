//! What went from probation lately: a number that comes again soon goes to the main set at once.
//!
//! A table of fingerprints, each with the time at which it was noted, counted in what went. Two numbers may share a place: then the later one has
//! it. An inode that is taken for another stays longer than it should, once.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use holdfast_sync::ShardedCounter;
use once_cell::race::OnceBox;

/// Bits of the time.
const AGE_BITS: u32 = 12;
/// So many units of time pass while as many go as the table has places.
const AGES: u64 = 512;
/// Places: at least, and at most.
const PLACES: (u64, u64) = (1 << 10, 1 << 24);

/// The table; none until something goes.
#[derive(Debug, Default)]
pub(crate) struct Ghosts {
    places: OnceBox<Box<[AtomicU32]>>,
    gone: AtomicU64,
    /// How often one came again that would still have been there.
    pub(crate) refaults: ShardedCounter,
}

impl Ghosts {
    /// An inode went, of about so many that there are.
    pub(crate) fn note(&self, number: u64, there: u64) {
        let places = self.places.get_or_init(|| {
            let places = there.clamp(PLACES.0, PLACES.1).next_power_of_two();
            Box::new((0..places).map(|_| AtomicU32::new(0)).collect())
        });
        let gone = self.gone.fetch_add(1, Relaxed);
        let (place, print) = places_of(number, places);
        place.store(print << AGE_BITS | age(gone, places), Relaxed);
    }

    /// Did this one go so lately that it would still be there if it had been in the main set? It is told once.
    pub(crate) fn take(&self, number: u64) -> bool {
        let Some(places) = self.places.get() else {
            return false;
        };
        let (place, print) = places_of(number, places);
        let noted = place.load(Relaxed);
        if noted >> AGE_BITS != print {
            return false;
        }
        place.store(0, Relaxed);
        let now = age(self.gone.load(Relaxed), places);
        let passed = now.wrapping_sub(noted) & ((1 << AGE_BITS) - 1);
        let is_refault = u64::from(passed) <= AGES;
        if is_refault {
            self.refaults.add(1);
        }
        is_refault
    }
}

/// The place of a number, and its fingerprint, which is not zero.
fn places_of(number: u64, places: &[AtomicU32]) -> (&AtomicU32, u32) {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let at = (mixed >> 32) as usize & (places.len() - 1);
    let print = (mixed & 0xf_ffff) as u32;
    (&places[at], print.max(1))
}

fn age(gone: u64, places: &[AtomicU32]) -> u32 {
    let unit = (places.len() as u64 / AGES).max(1);
    (gone / unit) as u32 & ((1 << AGE_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_lately_is_known_once_and_what_went_long_ago_is_not() {
        let ghosts = Ghosts::default();
        assert!(!ghosts.take(7));
        for number in 0..1000 {
            ghosts.note(number, 1024);
        }
        let known = (0..1000).filter(|&number| ghosts.take(number)).count();
        assert!(known > 500, "{known} of 1,000 in 1,024 places");
        assert!((0..1000).all(|number| !ghosts.take(number)), "each once");
        assert_eq!(ghosts.refaults.sum(), known as i64);
        ghosts.note(5, 1024);
        for number in 10_000..13_000 {
            ghosts.note(number, 1024);
        }
        assert!(!ghosts.take(5));
        let strange = (1 << 40..(1 << 40) + 1000)
            .filter(|&number| ghosts.take(number))
            .count();
        assert!(strange < 3, "{strange} strangers are known");
    }
}
