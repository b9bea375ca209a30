//! Numbers that are never dealt twice: of inodes, and of open files.
//!
//! Numbers are dealt to threads in runs, so that creators neither share a line nor mix their
//! numbers: files that one thread makes in a row are neighbours by number.
//!
//! Over a store, which keeps inodes in the order of their numbers, a directory takes *chunks* for what is
//! made in it, each larger than the one before: whoever walks over a directory meets neighbours,
//! whatever was made elsewhere meanwhile. What is left of a chunk when the directory leaves memory is
//! never dealt.

use holdfast_sync::{Padded, PerCore};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::types::Ino;

/// How many numbers a thread takes at once. Runs begin at multiples of it: indexes keep a run
/// of numbers on lines that no other run is on.
const RUN: u64 = 64;
/// The same where numbers are only dealt one by one: the leaves of an index that so many numbers have are all that one
/// node leads to. So no line of these is shared, and what a thread has made lies together.
const LONG_RUN: u64 = 64 * RUN;

/// Numbers of a directory's first chunk. Those of several directories are one run: of each core, so that
/// small directories that were made in a row are neighbours.
const UNIT: u64 = 16;
/// Each chunk is four times the one before, so far.
const GROWTH_SHIFT: u32 = 2;
const LARGEST: u16 = 4;
/// Where a chunk's rank begins; below is how many of its numbers were dealt.
const RANK_SHIFT: u32 = 12;

/// The numbers that were taken for one directory. Who deals from it has the directory for himself.
#[derive(Default)]
pub(crate) struct Chunk {
    /// Where it begins: units behind the first of all numbers.
    place: AtomicU32,
    /// Its rank, from 1 (0: there is none) to [`LARGEST`], and the numbers dealt.
    state: AtomicU16,
}

/// Deals numbers of 64 bits.
pub(crate) struct Numbers {
    /// The first that can be dealt.
    first: u64,
    /// The length of a run, a power of two.
    run: u64,
    /// The first number of the next run.
    next: Padded<AtomicU64>,
    /// The next number of each core's run; a multiple of its length when the run is used up.
    runs: PerCore<AtomicU64>,
    /// The same for threads that have no slot alone.
    shared: PerCore<AtomicU64>,
}

impl Numbers {
    /// Numbers greater than `last` and than the root's.
    pub(crate) fn after(last: Ino) -> Self {
        Self::in_runs(last, RUN)
    }

    /// The same for those who never ask for numbers near a directory's.
    pub(crate) fn scattered_after(last: Ino) -> Self {
        Self::in_runs(last, LONG_RUN)
    }

    fn in_runs(last: Ino, run: u64) -> Self {
        let first = last.0.max(Ino::ROOT.0).saturating_add(1);
        let first = first.next_multiple_of(run);
        Self {
            first,
            run,
            next: Padded(AtomicU64::new(first)),
            runs: PerCore::default(),
            shared: PerCore::default(),
        }
    }

    /// Does a run begin with this number? (Asked each time: a division would be the longest part of it.)
    #[inline]
    fn is_first(&self, number: u64) -> bool {
        number & (self.run - 1) == 0
    }

    /// A number that was never dealt before.
    #[inline]
    pub(crate) fn deal(&self) -> Ino {
        let Some(run) = self.runs.own() else {
            return self.deal_shared();
        };
        // Relaxed: only that a number is dealt once matters, and nobody else writes this run.
        let mut number = run.load(Relaxed);
        if self.is_first(number) {
            number = self.next.fetch_add(self.run, Relaxed);
        }
        run.store(number + 1, Relaxed);
        Ino(number)
    }

    /// A number that was never dealt before, near those of this directory.
    pub(crate) fn deal_from(&self, chunk: &Chunk) -> Ino {
        // Relaxed, here and below: nobody else uses the chunk.
        let state = chunk.state.load(Relaxed);
        let (rank, dealt) = (
            state >> RANK_SHIFT,
            u64::from(state & ((1 << RANK_SHIFT) - 1)),
        );
        if rank > 0 && dealt < len(rank) {
            chunk.state.store(state + 1, Relaxed);
            return Ino(self.first + u64::from(chunk.place.load(Relaxed)) * UNIT + dealt);
        }
        let rank = (rank + 1).min(LARGEST);
        let start = self.take(len(rank));
        match u32::try_from((start - self.first) / UNIT) {
            Ok(place) => {
                chunk.place.store(place, Relaxed);
                chunk.state.store(rank << RANK_SHIFT | 1, Relaxed);
            }
            // So many that a chunk cannot say where it is: one by one from now on.
            Err(_) => return self.deal(),
        }
        Ino(start)
    }

    /// Takes so many numbers that nobody else gets.
    fn take(&self, len: u64) -> u64 {
        let (UNIT, Some(run)) = (len, self.runs.own()) else {
            return self.next.fetch_add(len.next_multiple_of(RUN), Relaxed);
        };
        let mut start = run.load(Relaxed).next_multiple_of(UNIT);
        if start.is_multiple_of(RUN) {
            start = self.next.fetch_add(RUN, Relaxed);
        }
        run.store(start + UNIT, Relaxed);
        start
    }

    #[cold]
    fn deal_shared(&self) -> Ino {
        let run = self.shared.mine();
        let mut number = run.load(Relaxed);
        loop {
            if self.is_first(number) {
                let fresh = self.next.fetch_add(self.run, Relaxed);
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

/// Numbers of a chunk of this rank.
fn len(rank: u16) -> u64 {
    UNIT << (GROWTH_SHIFT * u32::from(rank - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_directory_gets_neighbours_whatever_is_made_elsewhere() {
        let numbers = Numbers::after(Ino(1));
        let directories: [Chunk; 100] = std::array::from_fn(|_| Chunk::default());
        let mut dealt = vec![Vec::new(); directories.len()];
        let mut all = HashSet::new();
        for round in 0..3000_u64 {
            for (place, directory) in directories.iter().enumerate() {
                let number = numbers.deal_from(directory).0;
                assert!(all.insert(number), "{number} was dealt twice");
                dealt[place].push(number);
            }
            if round % 7 == 0 {
                assert!(all.insert(numbers.deal().0));
            }
        }
        for one in dealt {
            let jumps = one.windows(2).filter(|two| two[0] + 1 != two[1]).count();
            // Chunks of 16, 64, 256, and then 1024.
            assert_eq!(jumps, 5);
        }
    }

    #[test]
    fn small_directories_made_in_a_row_are_neighbours() {
        let numbers = Numbers::after(Ino(1000));
        let dealt: Vec<u64> = (0..50)
            .flat_map(|_| {
                let directory = Chunk::default();
                let numbers = &numbers;
                (0..10).map(move |_| numbers.deal_from(&directory).0)
            })
            .collect();
        assert!(dealt.is_sorted());
        assert!(dealt[499] - dealt[0] < 50 * UNIT);
        assert!(dealt[0] > 1000);
    }

    #[test]
    fn chunks_that_threads_take_are_theirs_alone() {
        let numbers = Numbers::after(Ino(0));
        let dealt: Vec<Vec<Ino>> = std::thread::scope(|scope| {
            // More threads than slots: some have no run of their own.
            let threads: Vec<_> = (0..40)
                .map(|_| {
                    scope.spawn(|| {
                        let directories: [Chunk; 20] = std::array::from_fn(|_| Chunk::default());
                        let deal = |n: usize| match n % 3 {
                            0 => numbers.deal(),
                            _ => numbers.deal_from(&directories[n % 20]),
                        };
                        (0..1000).map(deal).collect()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let all: HashSet<Ino> = dealt.iter().flatten().copied().collect();
        assert_eq!(all.len(), 40_000);
    }

    #[test]
    fn behind_the_reach_of_chunks_numbers_are_dealt_one_by_one() {
        let numbers = Numbers::after(Ino(0));
        let directory = Chunk::default();
        let near = numbers.deal_from(&directory).0;
        numbers.next.fetch_add(UNIT << 32, Relaxed);
        let mut last = near;
        for _ in 1..5000 {
            let number = numbers.deal_from(&directory).0;
            assert!(number > last);
            last = number;
        }
        assert!(last > UNIT << 32);
    }

    #[test]
    fn threads_never_get_the_same_number() {
        for numbers in [Numbers::after(Ino(41)), Numbers::scattered_after(Ino(41))] {
            deal_to_many_threads(&numbers);
        }
    }

    fn deal_to_many_threads(numbers: &Numbers) {
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
