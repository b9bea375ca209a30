//! Writing what waits before there is much of it.
//!
//! The device could be at work while a program fills a file, and what is on it already need not be waited for at
//! the end. But a page that is written too early is written twice, and the less waits, the less is known of what
//! will lie side by side. So only what waits for nothing ([`ready`](crate::store::file::delayed_allocation::ready)) goes early, and
//! not while pages that were written are written again.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::store::file::page::WriteInFlight;

/// As many pages that wait for nothing are worth a commit.
const READY_MIN: u64 = 16_384;
/// A commit of fewer pages says little of what is written.
const TELLING: usize = 1024;

/// Whether it was learnt that waiting pays.
#[derive(Debug, Default)]
pub(in crate::store) struct Patience(AtomicBool);

impl Patience {
    /// Is it time to write, if so many pages wait, and so many of them for nothing?
    #[inline]
    pub(in crate::store) fn ends(&self, waiting: u64, ready: u64) -> bool {
        // Relaxed: a hint. Both numbers are estimates, and may not fit together.
        ready >= READY_MIN && ready >= waiting / 4 * 3 && !self.0.load(Ordering::Relaxed)
    }

    /// Looks at what a commit writes: were many of these blocks written before?
    pub(in crate::store) fn learn(&self, in_flight: &[WriteInFlight]) {
        if in_flight.len() >= TELLING {
            let again = in_flight.iter().filter(|page| !page.fresh).count();
            self.0.store(again > in_flight.len() / 4, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::file::page::Changed;

    fn commit(fresh: usize) -> Vec<WriteInFlight> {
        let page = |block: usize| WriteInFlight {
            block: block as u64,
            changed: Changed::part(0, &[1; 512]),
            fresh: block < fresh,
            over: block >= fresh,
        };
        (0..TELLING).map(page).collect()
    }

    #[test]
    fn what_is_ready_goes_early_until_much_is_written_again() {
        let patience = Patience::default();
        assert!(patience.ends(READY_MIN, READY_MIN));
        assert!(!patience.ends(READY_MIN, READY_MIN - 1));
        assert!(!patience.ends(2 * READY_MIN, READY_MIN), "most can wait");
        patience.learn(&commit(TELLING / 2));
        assert!(!patience.ends(READY_MIN, READY_MIN));
        patience.learn(&commit(TELLING)[1..]);
        assert!(!patience.ends(READY_MIN, READY_MIN), "too few to tell");
        patience.learn(&commit(TELLING / 4 * 3));
        assert!(patience.ends(READY_MIN, READY_MIN));
    }
}
