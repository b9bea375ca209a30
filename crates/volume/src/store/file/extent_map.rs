//! Where the blocks of one file lie.
//!
//! *Invariants.* Runs do not overlap, neither in the file nor on the device, and none is empty. Neighbours
//! that continue each other are one run.

mod forwards;
mod merge;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::space::Extent;
use forwards::Forwards;
use holdfast_sync::collections::map_bytes;
use merge::merged;

/// Runs that come to so many times their number are few.
const FEW_PART: usize = 2;

/// Consecutive blocks of a file that lie consecutively on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Run {
    /// Where they lie.
    pub(in crate::store) extent: Extent,
    /// The generation that allocated them.
    pub(in crate::store) birth: u64,
    /// Taken, but never written: they read as zeros.
    pub(in crate::store) unwritten: bool,
}

impl Run {
    /// The part that begins `skip` blocks in.
    fn behind(self, skip: u64) -> Self {
        Self {
            extent: self.extent.split(skip).1,
            ..self
        }
    }

    /// The first `blocks` of it.
    fn first(self, blocks: u64) -> Self {
        Self {
            extent: Extent::new(self.extent.start, blocks),
            ..self
        }
    }

    /// Of whatever birth: nothing is shared before there are forks.
    fn continues(&self, other: &Self) -> bool {
        other.extent.start + other.extent.length == self.extent.start
            && self.unwritten == other.unwritten
    }

    /// Both, of which the other continues this one. The older birth is that of both: it may call
    /// an extent shared that is not, never the other way round.
    fn with(self, other: &Self) -> Self {
        Self {
            birth: self.birth.min(other.birth),
            ..self.first(self.extent.length + other.extent.length)
        }
    }
}

/// The blocks of a file that have a place, by their numbers in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Mapping(BTreeMap<u64, Run>);

impl Mapping {
    /// How many runs there are.
    pub(in crate::store) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of memory.
    pub(in crate::store) fn memory(&self) -> usize {
        map_bytes::<(u64, Run)>(self.0.len())
    }

    /// The run that holds a block, from this block on.
    pub(in crate::store) fn find(&self, block: u64) -> Option<Run> {
        let (first, run) = self.0.range(..=block).next_back()?;
        let skip = block - first;
        (skip < run.extent.length).then(|| run.behind(skip))
    }

    /// The first mapped block at or after this one, and the run from there on.
    pub(in crate::store) fn next(&self, block: u64) -> Option<(u64, Run)> {
        if let Some(run) = self.find(block) {
            return Some((block, run));
        }
        self.0.range(block..).next().map(|(at, run)| (*at, *run))
    }

    /// The last run that begins before a block.
    pub(in crate::store) fn before(&self, block: u64) -> Option<(u64, Run)> {
        let last = self.0.range(..block).next_back();
        last.map(|(at, run)| (*at, *run))
    }

    /// All runs that end behind a block, in the order of the file.
    pub(in crate::store) fn behind(&self, block: u64) -> impl Iterator<Item = (u64, Run)> {
        let around = self.0.range(..block).next_back();
        let around = around.filter(|(first, run)| **first + run.extent.length > block);
        let behind = around.into_iter().chain(self.0.range(block..));
        behind.map(|(at, run)| (*at, *run))
    }

    /// For who asks for [the next run](Self::next) again and again, of blocks that ascend.
    pub(in crate::store) fn forwards(&self) -> Forwards<'_> {
        Forwards::new(self)
    }

    /// All runs, in the order of the file.
    pub(in crate::store) fn iter(&self) -> impl Iterator<Item = (u64, Run)> {
        self.0.iter().map(|(at, run)| (*at, *run))
    }

    /// Is nothing mapped?
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many blocks have a place.
    pub(in crate::store) fn blocks(&self) -> u64 {
        self.0.values().map(|run| run.extent.length).sum()
    }

    /// Gives blocks a place; returns what they had before.
    pub(in crate::store) fn map(&mut self, at: u64, run: Run) -> Vec<Run> {
        let before = self.unmap(at..at + run.extent.length);
        self.fill(at, run);
        before
    }

    /// Gives a place to blocks that have none.
    pub(in crate::store) fn fill(&mut self, at: u64, run: Run) {
        let filled = self.fill_if_bare(at, run);
        debug_assert!(filled, "blocks that have a place");
    }

    /// Gives a place to blocks, if none of them has one.
    fn fill_if_bare(&mut self, at: u64, run: Run) -> bool {
        debug_assert!(run.extent.length > 0);
        let (mut at, mut run) = (at, run);
        let end = at + run.extent.length;
        let mut around = self.0.range(..=end).rev().map(|(at, run)| (*at, *run));
        let mut left = around.next();
        let right = left.filter(|(first, _)| *first == end);
        if right.is_some() {
            left = around.next();
        }
        if left.is_some_and(|(first, left)| first + left.extent.length > at) {
            return false;
        }
        if let Some((first, left)) = left
            && first + left.extent.length == at
            && run.continues(&left)
        {
            run = left.with(&run);
            at = first;
        }
        if let Some((_, right)) = right
            && right.continues(&run)
        {
            run = run.with(&right);
            self.0.remove(&end);
        }
        self.0.insert(at, run);
        true
    }

    /// As [`map`](Self::map) of many runs, in the order of the file, whatever they had before.
    pub(in crate::store) fn map_all(&mut self, runs: Vec<(u64, Run)>) {
        if runs.len() * FEW_PART < self.0.len() {
            for (at, run) in runs {
                if !self.fill_if_bare(at, run) {
                    self.map(at, run);
                }
            }
            return;
        }
        // Many for how many there are: a new tree is made faster than the old one is searched.
        self.0 = merged(std::mem::take(&mut self.0), runs)
            .into_iter()
            .collect();
    }

    /// Takes their places from these blocks; returns the places, in the order of the file.
    pub(in crate::store) fn unmap(&mut self, range: Range<u64>) -> Vec<Run> {
        self.split(range.start);
        self.split(range.end);
        let gone: Vec<u64> = self.0.range(range).map(|(at, _)| *at).collect();
        gone.iter().filter_map(|at| self.0.remove(at)).collect()
    }

    /// The mapped parts of a range, cut to it.
    pub(in crate::store) fn within(&self, range: Range<u64>) -> Vec<(u64, Run)> {
        let mut found = Vec::new();
        let mut at = range.start;
        while let Some((first, run)) = self.next(at).filter(|(first, _)| *first < range.end) {
            let run = run.first(run.extent.length.min(range.end - first));
            at = first + run.extent.length;
            found.push((first, run));
        }
        found
    }

    /// Blocks from `range.end` on move down to `range.start`; the range has no places any more.
    pub(in crate::store) fn collapse(&mut self, range: Range<u64>) {
        debug_assert!(self.within(range.clone()).is_empty());
        let len = range.end - range.start;
        let behind = self.0.split_off(&range.end);
        for (at, run) in behind {
            self.map(at - len, run);
        }
    }

    /// Blocks from `at` on move up by `blocks`.
    pub(in crate::store) fn insert(&mut self, at: u64, blocks: u64) {
        self.split(at);
        let behind = self.0.split_off(&at);
        self.0
            .extend(behind.into_iter().map(|(at, run)| (at + blocks, run)));
    }

    /// Lets a run end where this block begins.
    fn split(&mut self, block: u64) {
        let Some((first, run)) = self.0.range_mut(..block).next_back() else {
            return;
        };
        let before = block - first;
        if before < run.extent.length {
            let behind = run.behind(before);
            *run = run.first(before);
            self.0.insert(block, behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCKS: u64 = 40;

    fn run(start: u64, blocks: u64, unwritten: bool) -> Run {
        Run {
            extent: Extent::new(start, blocks),
            birth: 1,
            unwritten,
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Map(u64, u64, bool),
        Unmap(u64, u64),
        Collapse(u64, u64),
        Insert(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = 0..BLOCKS;
        let len = 1..8_u64;
        prop_oneof![
            (at.clone(), len.clone(), any::<bool>()).prop_map(|(at, len, u)| Step::Map(at, len, u)),
            (at.clone(), len.clone()).prop_map(|(at, len)| Step::Unmap(at, len)),
            (at.clone(), len.clone()).prop_map(|(at, len)| Step::Collapse(at, len)),
            (at, len).prop_map(|(at, len)| Step::Insert(at, len)),
        ]
    }

    type Naive = Vec<Option<(u64, bool)>>;

    fn naive_step(naive: &mut Naive, step: &Step, fresh: u64) {
        match *step {
            Step::Map(at, len, unwritten) => {
                for skip in 0..len {
                    naive[(at + skip) as usize] = Some((fresh + skip, unwritten));
                }
            }
            Step::Unmap(at, len) => naive[at as usize..(at + len) as usize].fill(None),
            Step::Collapse(at, len) => {
                naive.drain(at as usize..(at + len) as usize);
                naive.resize(1000, None);
            }
            Step::Insert(at, len) => {
                naive.splice(at as usize..at as usize, (0..len).map(|_| None));
                naive.truncate(1000);
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_what_a_list_of_blocks_would_be(steps in prop::collection::vec(step(), 1..40)) {
            let mut mapping = Mapping::default();
            let mut naive: Naive = vec![None; 1000];
            for (number, step) in steps.iter().enumerate() {
                let fresh = 1000 * (number as u64 + 1);
                match *step {
                    Step::Map(at, len, unwritten) => {
                        mapping.map(at, run(fresh, len, unwritten));
                    }
                    Step::Unmap(at, len) => {
                        mapping.unmap(at..at + len);
                    }
                    Step::Collapse(at, len) => {
                        mapping.unmap(at..at + len);
                        mapping.collapse(at..at + len);
                    }
                    Step::Insert(at, len) => mapping.insert(at, len),
                }
                naive_step(&mut naive, step, fresh);
            }
            for (block, place) in naive.iter().enumerate() {
                let found = mapping.find(block as u64).map(|run| (run.extent.start, run.unwritten));
                prop_assert_eq!(found, *place);
            }
            let blocks = naive.iter().flatten().count() as u64;
            prop_assert_eq!(mapping.blocks(), blocks);
            let mut last: Option<(u64, Run)> = None;
            for (at, run) in mapping.iter() {
                if let Some((before, left)) = last {
                    let adjacent = before + left.extent.length == at;
                    prop_assert!(before + left.extent.length <= at);
                    prop_assert!(!(adjacent && run.continues(&left)), "not merged");
                }
                last = Some((at, run));
            }
        }
    }

    proptest! {
        #[test]
        fn many_runs_at_once_are_as_many_one_by_one(
            there in prop::collection::vec((0..12_u64, 1..8_u64, any::<(bool, bool)>()), 0..40),
            new in prop::collection::vec((0..12_u64, 1..8_u64, any::<(bool, bool)>()), 0..40),
        ) {
            // Rows behind each other; some continue each other, on the device too.
            let rows = |lens: Vec<(u64, u64, (bool, bool))>| {
                let mut end = 0;
                let rows = lens.into_iter().map(move |(skip, len, (elsewhere, unwritten))| {
                    let at = end + skip / 4;
                    end = at + len;
                    let start = 1000 + at + if elsewhere { 3000 } else { 0 };
                    (at, run(start, len, unwritten))
                });
                rows.collect::<Vec<_>>()
            };
            let mut one_by_one = Mapping::default();
            for (at, run) in rows(there) {
                one_by_one.map(at, run);
            }
            let mut at_once = one_by_one.clone();
            let new = rows(new);
            for (at, run) in &new {
                one_by_one.map(*at, *run);
            }
            at_once.map_all(new);
            for at in 0..400 {
                let behind = at_once.behind(at).map(|(first, run)| {
                    let skip = at.saturating_sub(first);
                    (first + skip, run.behind(skip))
                });
                prop_assert_eq!(behind.collect::<Vec<_>>(), one_by_one.within(at..500));
            }
            prop_assert_eq!(at_once, one_by_one);
        }
    }

    proptest! {
        #[test]
        fn going_forwards_meets_what_searches_find(
            there in prop::collection::btree_set(0..2000_u64, 0..300),
            mut asked in prop::collection::vec(0..2100_u64, 0..60),
        ) {
            let mut mapping = Mapping::default();
            for at in there {
                // Some are neighbours, others are long.
                let len = if at % 50 == 0 { 5 } else { 1 };
                mapping.map(at, run(10_000 + at, len, false));
            }
            asked.sort_unstable();
            let mut forwards = mapping.forwards();
            for block in asked {
                prop_assert_eq!(forwards.next(block), mapping.next(block));
            }
        }
    }

    #[test]
    fn what_a_new_place_replaces_comes_back() {
        let mut mapping = Mapping::default();
        assert!(mapping.map(0, run(100, 10, false)).is_empty());
        let before = mapping.map(3, run(200, 4, false));
        assert_eq!(before, [run(103, 4, false)]);
        assert_eq!(mapping.within(2..8).len(), 3);
        assert_eq!(mapping.next(12), None);
        assert_eq!(mapping.unmap(0..100).len(), 3);
        assert!(mapping.is_empty());
    }
}
