//! Numbers that are never dealt twice: of inodes, and of open files.
//!
//! Numbers are dealt to threads in runs, so that creators neither share a line nor mix their
//! numbers: files that one thread makes in a row are neighbours by number.

use holdfast_sync::PerCore;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::types::Ino;

/// How many numbers a thread takes at once.
const RUN: u64 = 64;

/// Deals numbers of 64 bits.
pub(crate) struct Numbers {
    next: AtomicU64,
    runs: PerCore<Mutex<Range<u64>>>,
}

impl Numbers {
    /// Numbers greater than `last` and than the root's.
    pub(crate) fn after(last: Ino) -> Self {
        let first = last.0.max(Ino::ROOT.0).saturating_add(1);
        Self {
            next: AtomicU64::new(first),
            runs: PerCore::new(|| Mutex::new(0..0)),
        }
    }

    /// A number that was never dealt before.
    pub(crate) fn deal(&self) -> Ino {
        let mut run = self.runs.mine().lock();
        if run.is_empty() {
            let start = self.next.fetch_add(RUN, Relaxed);
            *run = start..start + RUN;
        }
        let number = run.start;
        run.start += 1;
        Ino(number)
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
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..1000).map(|_| numbers.deal()).collect()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let all: HashSet<Ino> = dealt.iter().flatten().copied().collect();
        assert_eq!(all.len(), 4000);
        assert!(all.iter().all(|ino| ino.0 > 41));
    }
}
