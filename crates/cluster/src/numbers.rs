//! Numbers of new inodes, cookies and objects, from ranges that the database deals.
//!
//! A directory that is being filled gets blocks of numbers, so that its inodes are neighbours in
//! the database. The beat thread [fetches](Numbers::refill) the next range before the last is used
//! up, so that a creation waits for no number.

use crate::bounded::BoundedMap;
use crate::meta::Meta;
use holdfast_types::{Errno, Ino, Result};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The length of the first range, and of the longest.
const FIRST: u64 = 1024;
const LONGEST: u64 = 1 << 16;
/// Numbers that a directory gets first, and those that it gets when these are used up.
const FIRST_BLOCK: u64 = 8;
const BLOCK: u64 = 64;
/// Directories with a block. The rest of a forgotten block is not used.
const DIRECTORIES: usize = 1024;

/// The numbers of a mount.
pub(crate) struct Numbers {
    meta: Arc<dyn Meta>,
    state: Mutex<State>,
    /// Held during a request for a range: the others that need one wait for its answer.
    fetching: Mutex<()>,
}

struct State {
    /// Unused numbers; the first range is used first.
    ranges: VecDeque<Range<u64>>,
    /// The length of the next range that is fetched.
    next: u64,
    blocks: BoundedMap<Ino, Range<u64>>,
}

impl Numbers {
    pub(crate) fn new(meta: Arc<dyn Meta>) -> Arc<Self> {
        Arc::new(Self {
            meta,
            state: Mutex::new(State::new()),
            fetching: Mutex::new(()),
        })
    }

    /// A number for an object.
    ///
    /// # Errors
    /// Those of [`Meta::deal`].
    pub(crate) fn object(&self) -> Result<u64> {
        self.row(1)
    }

    /// The first of `count` consecutive numbers; at most [`FIRST`].
    ///
    /// # Errors
    /// Those of [`Meta::deal`].
    pub(crate) fn row(&self, count: u64) -> Result<u64> {
        self.with(|state| state.row(count))
    }

    /// A number for an inode that gets a name in this directory.
    ///
    /// # Errors
    /// Those of [`Meta::deal`].
    pub(crate) fn in_directory(&self, dir: Ino) -> Result<Ino> {
        self.with(|state| state.in_directory(dir)).map(Ino)
    }

    /// Fetches the next range if little is left. The beat thread calls it, so that others need not
    /// wait.
    ///
    /// # Errors
    /// Those of [`Meta::deal`].
    pub(crate) fn refill(&self) -> Result<()> {
        if !self.state.lock().is_low() {
            return Ok(());
        }
        let _fetching = self.fetching.lock();
        if self.state.lock().is_low() {
            self.fetch()?;
        }
        Ok(())
    }

    /// Takes numbers; fetches a range if there are too few.
    fn with<R>(&self, mut take: impl FnMut(&mut State) -> Option<R>) -> Result<R> {
        if let Some(taken) = take(&mut self.state.lock()) {
            return Ok(taken);
        }
        let _fetching = self.fetching.lock();
        // Another thread may have fetched a range meanwhile.
        if let Some(taken) = take(&mut self.state.lock()) {
            return Ok(taken);
        }
        self.fetch()?;
        take(&mut self.state.lock()).ok_or(Errno::EIO)
    }

    fn fetch(&self) -> Result<()> {
        let count = self.state.lock().next;
        let range = self.meta.deal(count)?;
        let mut state = self.state.lock();
        state.ranges.push_back(range);
        state.next = (count * 2).min(LONGEST);
        Ok(())
    }
}

impl State {
    fn new() -> Self {
        Self {
            ranges: VecDeque::new(),
            next: FIRST,
            blocks: BoundedMap::new(DIRECTORIES),
        }
    }

    /// Is less than half of the last range left, or a quarter of a longest one?
    fn is_low(&self) -> bool {
        let left = self.ranges.iter().map(|range| range.end - range.start);
        left.sum::<u64>() < self.next / 4
    }

    fn row(&mut self, count: u64) -> Option<u64> {
        while let Some(range) = self.ranges.front_mut() {
            if range.end.saturating_sub(range.start) >= count {
                let first = range.start;
                range.start += count;
                return Some(first);
            }
            self.ranges.pop_front();
        }
        None
    }

    fn in_directory(&mut self, dir: Ino) -> Option<u64> {
        if let Some(number) = self.blocks.get(dir).and_then(Iterator::next) {
            return Some(number);
        }
        let count = match self.blocks.get(dir) {
            None => FIRST_BLOCK,
            Some(_) => BLOCK,
        };
        let first = self.row(count)?;
        self.blocks.insert(dir, first + 1..first + count);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_inodes_of_a_directory_are_neighbours_and_no_number_comes_twice() {
        let mut state = State::new();
        state.ranges.push_back(1000..2000);
        let mut all = HashSet::new();
        let mut last = Vec::new();
        for round in 0..200 {
            for dir in [Ino(1), Ino(2)] {
                let number = state.in_directory(dir).unwrap();
                assert!(all.insert(number), "{number}");
                if dir == Ino(1) {
                    last.push(number);
                }
            }
            assert!(round % 3 > 0 || all.insert(state.row(1).unwrap()));
        }
        let neighbours = last.windows(2).filter(|pair| pair[1] == pair[0] + 1);
        assert_eq!(neighbours.count(), 196, "blocks of 8, 64, 64 and 64");
    }

    #[test]
    fn a_row_lies_in_one_range() {
        let mut state = State::new();
        assert!(state.is_low());
        state.ranges.extend([10..11, 20..30]);
        assert_eq!(state.row(2), Some(20));
        assert_eq!(state.row(8), Some(22));
        assert_eq!(state.row(1), None);
        state.ranges.push_back(0..FIRST);
        assert!(!state.is_low());
    }
}
