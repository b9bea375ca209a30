//! Numbers that are assigned only once: of inodes, and of open files.
//!
//! Threads take numbers in runs, so that creators share no cache line, and files that one thread
//! creates in sequence have neighbouring numbers.
//!
//! A store keeps inodes in the order of their numbers. A directory takes *chunks* of
//! numbers for its new files, each larger than the one before. So a walk over a directory meets
//! neighbours, whatever was created elsewhere meanwhile. The rest of a chunk is never assigned if
//! the directory is evicted.

use holdfast_sync::{Padded, PerCore};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::types::Ino;

/// Numbers that a thread takes at once. Runs begin at multiples of it, so that runs share no cache
/// line of an index.
const RUN: u64 = 64;

/// Numbers of a directory's first chunk. First chunks of several directories come from one run of a
/// core, so that small directories created in sequence are neighbours.
const UNIT: u64 = 16;
/// Each chunk is 2^`RATIO_SHIFT` times the one before, up to rank `LARGEST`.
const RATIO_SHIFT: u32 = 2;
const LARGEST: u16 = 4;
/// The position of the rank in `state`; the bits below count the assigned numbers.
const RANK_SHIFT: u32 = 12;

/// The current chunk of a directory. Its users exclude each other by the lock of the names.
#[derive(Default)]
pub(crate) struct Chunk {
    /// The chunk's beginning, in units from `Numbers::first`.
    place: AtomicU32,
    /// The rank, from 1 (0: no chunk) to [`LARGEST`], and the count of assigned numbers.
    state: AtomicU16,
}

/// Assigns numbers of 64 bits.
pub(crate) struct Numbers {
    /// The first number to be assigned.
    first: u64,
    /// The first number of the next run.
    next: Padded<AtomicU64>,
    /// The next number of each core's run; a multiple of [`RUN`] once the run is used up.
    runs: PerCore<AtomicU64>,
}

impl Numbers {
    /// Numbers greater than `last` and than the root's.
    pub(crate) fn after(last: Ino) -> Self {
        let first = last.0.max(Ino::ROOT.0).saturating_add(1);
        let first = first.next_multiple_of(RUN);
        Self {
            first,
            next: Padded(AtomicU64::new(first)),
            runs: PerCore::default(),
        }
    }

    /// Assigns a number.
    pub(crate) fn assign(&self) -> Ino {
        Ino(self.take_from_run(1))
    }

    /// Takes `len` numbers from the core's run, at a multiple of `len`; `RUN` is a multiple of it.
    fn take_from_run(&self, len: u64) -> u64 {
        let run = self.runs.mine();
        // Relaxed: the numbers have only to be unique.
        let mut next = run.load(Relaxed);
        loop {
            let mut start = next.next_multiple_of(len);
            let is_used_up = start.is_multiple_of(RUN);
            if is_used_up {
                start = self.next.fetch_add(RUN, Relaxed);
            }
            match run.compare_exchange(next, start + len, Relaxed, Relaxed) {
                Ok(_) => return start,
                // Another thread with this slot has begun a run: this one is given up.
                Err(_) if is_used_up => return start,
                Err(now) => next = now,
            }
        }
    }

    /// Assigns a number, if possible next to the others of this directory.
    pub(crate) fn assign_near(&self, chunk: &Chunk) -> Ino {
        // Relaxed, here and below: the lock of the names protects the chunk.
        let state = chunk.state.load(Relaxed);
        let (rank, assigned) = (
            state >> RANK_SHIFT,
            u64::from(state & ((1 << RANK_SHIFT) - 1)),
        );
        if rank > 0 && assigned < len(rank) {
            chunk.state.store(state + 1, Relaxed);
            return Ino(self.first + u64::from(chunk.place.load(Relaxed)) * UNIT + assigned);
        }
        let rank = (rank + 1).min(LARGEST);
        let start = match len(rank) {
            UNIT => self.take_from_run(UNIT),
            len => self.next.fetch_add(len, Relaxed),
        };
        match u32::try_from((start - self.first) / UNIT) {
            Ok(place) => {
                chunk.place.store(place, Relaxed);
                chunk.state.store(rank << RANK_SHIFT | 1, Relaxed);
            }
            // The place does not fit in a chunk: numbers are assigned one by one from now on.
            Err(_) => return self.assign(),
        }
        Ino(start)
    }
}

/// The numbers of a chunk of this rank.
fn len(rank: u16) -> u64 {
    UNIT << (RATIO_SHIFT * u32::from(rank - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_directory_gets_neighbours_whatever_is_made_elsewhere() {
        let numbers = Numbers::after(Ino(1));
        let directories: [Chunk; 100] = std::array::from_fn(|_| Chunk::default());
        let mut assigned = vec![Vec::new(); directories.len()];
        let mut all = HashSet::new();
        for round in 0..3000_u64 {
            for (place, directory) in directories.iter().enumerate() {
                let number = numbers.assign_near(directory).0;
                assert!(all.insert(number), "{number} was assigned twice");
                assigned[place].push(number);
            }
            if round % 7 == 0 {
                assert!(all.insert(numbers.assign().0));
            }
        }
        for one in assigned {
            let jumps = one.windows(2).filter(|two| two[0] + 1 != two[1]).count();
            // Chunks of 16, 64, 256, and then 1024.
            assert_eq!(jumps, 5);
        }
    }

    #[test]
    fn small_directories_made_in_a_row_are_neighbours() {
        let numbers = Numbers::after(Ino(1000));
        let assigned: Vec<u64> = (0..50)
            .flat_map(|_| {
                let directory = Chunk::default();
                let numbers = &numbers;
                (0..10).map(move |_| numbers.assign_near(&directory).0)
            })
            .collect();
        assert!(assigned.is_sorted());
        assert!(assigned[499] - assigned[0] < 50 * UNIT);
        assert!(assigned[0] > 1000);
    }

    #[test]
    fn threads_never_get_the_same_number() {
        {
            let numbers = Numbers::after(Ino(41));
            let assigned: Vec<Vec<Ino>> = std::thread::scope(|scope| {
                // More threads than slots: some have no exclusive slot.
                let threads: Vec<_> = (0..40)
                    .map(|_| {
                        scope.spawn(|| {
                            let directories: [Chunk; 20] =
                                std::array::from_fn(|_| Chunk::default());
                            let assign = |n: usize| match n % 3 {
                                0 => numbers.assign(),
                                _ => numbers.assign_near(&directories[n % 20]),
                            };
                            (0..1000).map(assign).collect()
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect()
            });
            let all: HashSet<Ino> = assigned.iter().flatten().copied().collect();
            assert_eq!(all.len(), 40_000);
            assert!(all.iter().all(|ino| ino.0 > 41));
        }
    }

    #[test]
    fn behind_the_reach_of_chunks_numbers_are_dealt_one_by_one() {
        let numbers = Numbers::after(Ino(0));
        let directory = Chunk::default();
        let near = numbers.assign_near(&directory).0;
        numbers.next.fetch_add(UNIT << 32, Relaxed);
        let mut last = near;
        for _ in 1..5000 {
            let number = numbers.assign_near(&directory).0;
            assert!(number > last);
            last = number;
        }
        assert!(last > UNIT << 32);
    }
}
