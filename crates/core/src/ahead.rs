//! Reading ahead: who loads inodes one after the other by number is given more at once.
//!
//! Files that were made one after the other have neighbouring numbers, and are mostly changed or removed in
//! that order too. So the third load of a core in such an order brings a run along, which grows as long
//! as that goes on. Any other load brings one inode.

use holdfast_sync::PerCore;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::types::Ino;

/// How far behind the last one a load still follows it: numbers are dealt in runs.
const NEAR: u64 = 256;
/// Inodes of the first run, and how often it doubles.
const FIRST: usize = 8;
const GROWTH: u32 = 4;

/// What each core loaded last.
#[derive(Default)]
pub(crate) struct Ahead(PerCore<Last>);

#[derive(Default)]
struct Last {
    ino: AtomicU64,
    /// How many in a row followed the one before.
    streak: AtomicU32,
}

// All relaxed: threads that share a slot may spoil each other's guesses, no more.
impl Ahead {
    /// How many inodes are to be loaded, from this one on.
    pub(crate) fn run(&self, ino: Ino) -> usize {
        let last = self.0.mine();
        let before = last.ino.swap(ino.0, Relaxed);
        let follows = ino.0 > before && ino.0 - before <= NEAR;
        let streak = match follows && before != 0 {
            true => last.streak.load(Relaxed).saturating_add(1),
            false => 0,
        };
        last.streak.store(streak, Relaxed);
        match streak {
            0 | 1 => 1,
            more => FIRST << (more - 2).min(GROWTH),
        }
    }

    /// The run went so far.
    pub(crate) fn reached(&self, ino: Ino) {
        self.0.mine().ino.fetch_max(ino.0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_grow_while_numbers_follow_each_other_and_end_with_the_first_that_does_not() {
        let ahead = Ahead::default();
        assert_eq!(ahead.run(Ino(1000)), 1);
        assert_eq!(ahead.run(Ino(1001)), 1);
        let mut next = 1002;
        for run in [8, 16, 32, 64, 128, 128] {
            assert_eq!(ahead.run(Ino(next)), run);
            next += run as u64;
            ahead.reached(Ino(next - 1));
        }
        // Numbers that nobody has, in between.
        assert_eq!(ahead.run(Ino(next + 100)), 128);
        assert_eq!(ahead.run(Ino(next + 10_000)), 1);
        assert_eq!(ahead.run(Ino(next)), 1);
        assert_eq!(ahead.run(Ino(next)), 1);
        assert_eq!(ahead.run(Ino(next + 1)), 1);
        assert_eq!(ahead.run(Ino(next + 2)), 8);
    }
}
