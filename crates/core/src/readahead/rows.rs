//! Runs of inode numbers: loads one after the other by number are given more at once.
//!
//! This is for loads that tell no name: those by number alone, and those of names that are locked, as a change or a removal has
//! them. Loads by name have [scans](super::Scans).
//!
//! Files that were made one after the other in a directory have neighbouring numbers, and are mostly changed
//! or removed in that order too. So the third load in such an order brings a run along, which grows as
//! long as that goes on. Any other load brings one inode.
//!
//! A directory's numbers come in chunks, between which are those of others: runs end where a chunk may end, and an
//! order goes on where the next may begin.
//!
//! Such an order is looked for among the loads of each core and, where those have none, among its loads of
//! each directory: a program that removes files as they were made, now in this directory and now in that, asks
//! each for its own in order. Directories have no room of their own for that: each core has a table of
//! orders; directories share its rows by chance, and in a full one the shortest order is given up.

use holdfast_sync::PerCore;
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::inode::DirectoryBody;
use crate::types::Ino;

/// How far behind the last one a load still follows it: numbers are dealt in runs.
const NEAR: u64 = 256;
/// Chunks of numbers begin at multiples of this, but for the smallest.
const CHUNK: u64 = 64;
/// How far behind the end of a chunk the next one may begin: as many threads make files at the same time.
const HOP: u64 = 1 << 16;
/// Inodes of the first run, and how often it doubles.
const FIRST: usize = 8;
const GROWTH: u32 = 4;
/// The streak from which on a run is brought along.
const ENOUGH: u32 = 2;

/// Bits of a stream's word that count; above them is the number.
const STREAK_BITS: u32 = 8;
const STREAK_MAX: u32 = (1 << STREAK_BITS) - 1;

/// Rows of orders that a core has room for, a line each; those of a directory are in one row.
const ROWS: usize = 64;
const ROW: usize = 8;

/// Loads one after the other: the number of the last, and how many in a row followed the one before.
#[derive(Default)]
struct Stream(AtomicU64);

// All relaxed: threads that share a stream may spoil each other's guesses, no more. So may the highest
// bits of numbers, which a word has no room for.
impl Stream {
    /// The streak if this load is the next. 0: it does not follow, or only by a hop, which does not count.
    fn streak(&self, ino: Ino, hops: bool) -> u32 {
        let word = self.0.load(Relaxed);
        let (last, streak) = (word >> STREAK_BITS, word as u32 & STREAK_MAX);
        let distance = (ino.0 << STREAK_BITS >> STREAK_BITS).wrapping_sub(last);
        let is_hop =
            distance <= HOP && (last + 1).is_multiple_of(CHUNK) && ino.0.is_multiple_of(CHUNK);
        let follows = (1..=NEAR).contains(&distance) || hops && is_hop;
        match last != 0 && follows {
            true => (streak + 1).min(STREAK_MAX),
            false => 0,
        }
    }

    /// How likely it is to go on: not at all if it never began.
    fn promise(&self) -> u64 {
        match self.0.load(Relaxed) {
            0 => 0,
            word => 1 + (word & u64::from(STREAK_MAX)),
        }
    }

    /// It went so far.
    fn go_on(&self, last: Ino, streak: u32) {
        self.0
            .store(last.0 << STREAK_BITS | u64::from(streak), Relaxed);
    }
}

/// Whose order a load may be in, besides its core's: that of the loads of a directory.
#[derive(Clone, Copy)]
pub(crate) struct Near(usize);

impl Near {
    /// That of this directory: by where it lies, which is enough to tell it from others for a while.
    pub(crate) fn of(body: &DirectoryBody) -> Self {
        Self(std::ptr::from_ref(body).addr())
    }

    fn row(self) -> usize {
        let hash = (self.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> (u64::BITS - ROWS.ilog2())) as usize
    }
}

/// What a core loaded last.
#[derive(Default)]
struct Own {
    last: Stream,
    /// Of directories; made with the first that is loaded in.
    near: OnceBox<[Row; ROWS]>,
}

/// Orders of directories that share a row by chance. Which is whose is told by the numbers.
#[derive(Default)]
#[repr(align(64))]
struct Row([Stream; ROW]);

impl Own {
    /// The order that this load is in, or that it begins.
    fn near(&self, near: Near, ino: Ino) -> &Stream {
        let made = || Box::new(std::array::from_fn(|_| Row::default()));
        let Row(row) = &self.near.get_or_init(made)[near.row()];
        let follows = |hops| row.iter().find(|stream| stream.streak(ino, hops) > 0);
        // Else the one that promises least goes.
        let least = || row.iter().min_by_key(|stream| stream.promise());
        let stream = follows(false).or_else(|| follows(true)).or_else(least);
        stream.unwrap_or(&self.last)
    }
}

/// What each core loaded last.
#[derive(Default)]
pub(crate) struct Orders(PerCore<Own>);

impl Orders {
    /// How many inodes are to be loaded, from this one on. `near`: the directory in which it was found.
    pub(crate) fn run(&self, ino: Ino, near: Option<Near>) -> usize {
        let mine = self.0.mine();
        let core = &mine.last;
        let dir = near.map(|near| mine.near(near, ino));
        let streak_of = |hops| match core.streak(ino, hops) {
            0 => dir.map_or(0, |dir| dir.streak(ino, hops)),
            own => own,
        };
        let streak = match streak_of(false) {
            0 => streak_of(true),
            near => near,
        };
        let count = match streak {
            0 | 1 => 1,
            more => FIRST << (more - ENOUGH).min(GROWTH),
        };
        let count = until_chunk(ino, count as u64);
        let last = Ino(ino.0.saturating_add(count - 1));
        core.go_on(last, streak);
        if let Some(dir) = dir {
            dir.go_on(last, streak);
        }
        count as usize
    }
}

/// A run of at most so many, from this one on, that ends with a chunk if it comes to one's end.
fn until_chunk(first: Ino, count: u64) -> u64 {
    let end = first.0.saturating_add(count);
    match end - end % CHUNK {
        chunk if chunk > first.0 => chunk - first.0,
        _ => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_grow_while_numbers_follow_each_other_and_end_with_the_first_that_does_not() {
        let orders = Orders::default();
        let run = |ino| orders.run(Ino(ino), None);
        assert_eq!(run(1000), 1);
        assert_eq!(run(1001), 1);
        let mut next = 1002;
        // They end where chunks may end.
        for expected in [8, 14, 32, 32, 128, 128] {
            assert_eq!(run(next), expected);
            next += expected as u64;
        }
        // Numbers that nobody has, in between.
        assert_eq!(run(next + 100), 92);
        assert_eq!(run(next + 10_000), 1);
        assert_eq!(run(next), 1);
        assert_eq!(run(next), 1);
        assert_eq!(run(next + 1), 1);
        assert_eq!(run(next + 2), 8);
    }

    #[test]
    fn an_order_goes_on_in_the_next_chunk_and_brings_nothing_of_what_is_between() {
        let orders = Orders::default();
        let run = |ino| orders.run(Ino(ino), None);
        // As a directory takes them, while others take some as well.
        let chunks: [(u64, u64); 5] = [
            (6400, 64),
            (6592, 256),
            (8192, 1024),
            (9216, 1024),
            (12_288, 1024),
        ];
        let mut loads = 0;
        for (start, len) in chunks {
            let mut next = start;
            while next < start + len {
                next += run(next) as u64;
                loads += 1;
            }
            assert_eq!(next, start + len, "something else came along");
        }
        assert_eq!(loads, 6 + 2 + 3 * 8);
        // So far behind, or in the midst of a chunk, it is none.
        let end = 12_288 + 1024;
        assert_eq!(run(end + HOP), 1);
        assert_eq!([1, 2].map(|more| run(end + HOP + more)), [1, 8]);
        assert_eq!(run(end + 2 * HOP), 1);
    }

    #[test]
    fn each_directory_goes_on_where_it_was() {
        let orders = Orders::default();
        // Two in one row, one in another.
        let near = [64, 64, 128].map(Near);
        assert_ne!(near[0].row(), near[2].row());
        let mut next = [10_000, 20_000, (1 << 57) + 7];
        for count in [1, 1, 8, 16, 32] {
            for (near, next) in near.into_iter().zip(&mut next) {
                let expected = until_chunk(Ino(*next), count);
                assert_eq!(orders.run(Ino(*next), Some(near)) as u64, expected);
                *next += expected;
            }
        }
        // What the core took along by itself the directory knows of.
        for expected in [64, 128, 128] {
            assert_eq!(orders.run(Ino(next[2]), Some(near[2])), expected);
            next[2] += expected as u64;
        }
        assert_eq!(orders.run(Ino(next[0]), Some(near[0])), 64);
        assert_eq!(orders.run(Ino(next[2]), Some(near[2])), 128);
        // Many that never go on do not drive out one that does.
        for stray in 1..100 {
            assert_eq!(
                orders.run(Ino(1_000_000 + stray * 10_000), Some(near[1])),
                1
            );
        }
        assert_eq!(orders.run(Ino(next[1]), Some(near[1])), 64);
    }
}
