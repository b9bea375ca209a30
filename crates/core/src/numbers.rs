//! Numbers that are never dealt twice: of inodes, and of open files.
//!
//! Numbers are dealt to threads in runs, so that creators neither share a line nor mix their
//! numbers: files that one thread makes in a row are neighbours by number.

use holdfast_sync::{Padded, PerCore};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::types::Ino;

/// How many numbers a thread takes at once. Runs begin at multiples of it: indexes keep a run
/// of numbers on lines that no other run is on.
const RUN: u64 = 64;

/// Deals numbers of 64 bits.
pub(crate) struct Numbers {
    /// The first number of the next run.
    next: Padded<AtomicU64>,
    /// The next number of each core's run; a multiple of [`RUN`] when the run is used up.
    runs: PerCore<AtomicU64>,
    /// The same for threads that have no slot alone.
    shared: PerCore<AtomicU64>,
}

impl Numbers {
    /// Numbers greater than `last` and than the root's.
    pub(crate) fn after(last: Ino) -> Self {
        let first = last.0.max(Ino::ROOT.0).saturating_add(1);
        Self {
            next: Padded(AtomicU64::new(first.next_multiple_of(RUN))),
            runs: PerCore::default(),
            shared: PerCore::default(),
        }
    }

    /// A number that was never dealt before.
    #[inline]
    pub(crate) fn deal(&self) -> Ino {
        let Some(run) = self.runs.own() else {
            return self.deal_shared();
        };
        // Relaxed: only that a number is dealt once matters, and nobody else writes this run.
        let mut number = run.load(Relaxed);
        if number.is_multiple_of(RUN) {
            number = self.next.fetch_add(RUN, Relaxed);
        }
        run.store(number + 1, Relaxed);
        Ino(number)
    }

    #[cold]
    fn deal_shared(&self) -> Ino {
        let run = self.shared.mine();
        let mut number = run.load(Relaxed);
        loop {
            if number.is_multiple_of(RUN) {
                let fresh = self.next.fetch_add(RUN, Relaxed);
                // If threads that share the slot were faster, the first of the run will do.
                let _ = run.compare_exchange(number, fresh + 1, Relaxed, Relaxed);
                return Ino(fresh);
            }
            match run.compare_exchange_weak(number, number + 1, Relaxed, Relaxed) {
                Ok(_) => return Ino(number),
                Err(now) => number = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn threads_never_get_the_same_number() {
        let numbers = Numbers::after(Ino(41));
        let dealt: Vec<Vec<Ino>> = std::thread::scope(|scope| {
            // More threads than slots: some share.
            let threads: Vec<_> = (0..40)
                .map(|_| scope.spawn(|| (0..1000).map(|_| numbers.deal()).collect()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let all: HashSet<Ino> = dealt.iter().flatten().copied().collect();
        assert_eq!(all.len(), 40_000);
        assert!(all.iter().all(|ino| ino.0 > 41));
    }
}
