//! The extent map of one file.
//!
//! *Invariants.* Runs do not overlap, neither in the file nor on the device, and none is empty.
//! Adjacent runs that continue each other are coalesced.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::space::Extent;
use crate::tree;
use holdfast_sync::collections::map_bytes;

/// Consecutive blocks of a file at consecutive blocks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Run {
    /// Their place on the device.
    pub(in crate::store) extent: Extent,
    /// The generation that allocated them.
    pub(in crate::store) generation: u64,
    /// Allocated but never written: reads as zeros.
    pub(in crate::store) unwritten: bool,
}

impl Run {
    /// The run of an extent record.
    pub(in crate::store) fn of(extent: &tree::Extent) -> Self {
        Self {
            extent: extent.span(),
            generation: extent.generation,
            unwritten: extent.unwritten,
        }
    }

    /// The rest after `skip` blocks.
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

    /// Whatever their generations: nothing is shared before there are snapshots.
    fn continues(&self, other: &Self) -> bool {
        other.extent.start + other.extent.length == self.extent.start
            && self.unwritten == other.unwritten
    }

    /// This run with `other`, which continues it. The older generation counts: it may make an
    /// unshared extent look shared, but never the reverse.
    fn with(self, other: &Self) -> Self {
        Self {
            generation: self.generation.min(other.generation),
            ..self.first(self.extent.length + other.extent.length)
        }
    }
}

/// The allocated blocks of a file, by block number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Mapping(BTreeMap<u64, Run>);

impl Mapping {
    pub(in crate::store) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::store) fn memory(&self) -> usize {
        map_bytes::<(u64, Run)>(self.0.len())
    }

    /// The run from `block` on, if it is allocated.
    pub(in crate::store) fn find(&self, block: u64) -> Option<Run> {
        let (first, run) = self.0.range(..=block).next_back()?;
        let skip = block - first;
        (skip < run.extent.length).then(|| run.behind(skip))
    }

    /// The first allocated block at or after `block`, and the run from there on.
    pub(in crate::store) fn next(&self, block: u64) -> Option<(u64, Run)> {
        if let Some(run) = self.find(block) {
            return Some((block, run));
        }
        self.0.range(block..).next().map(|(at, run)| (*at, *run))
    }

    /// The last run that begins before `block`.
    pub(in crate::store) fn before(&self, block: u64) -> Option<(u64, Run)> {
        let last = self.0.range(..block).next_back();
        last.map(|(at, run)| (*at, *run))
    }

    /// All runs that end after `block`, in file order.
    pub(in crate::store) fn behind(&self, block: u64) -> impl Iterator<Item = (u64, Run)> {
        let around = self.0.range(..block).next_back();
        let around = around.filter(|(first, run)| **first + run.extent.length > block);
        let behind = around.into_iter().chain(self.0.range(block..));
        behind.map(|(at, run)| (*at, *run))
    }

    /// All runs, in file order.
    pub(in crate::store) fn iter(&self) -> impl Iterator<Item = (u64, Run)> {
        self.0.iter().map(|(at, run)| (*at, *run))
    }

    pub(in crate::store) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Allocated blocks.
    pub(in crate::store) fn blocks(&self) -> u64 {
        self.0.values().map(|run| run.extent.length).sum()
    }

    /// Maps blocks; returns their old extents.
    pub(in crate::store) fn map(&mut self, at: u64, run: Run) -> Vec<Run> {
        let before = self.unmap(at..at + run.extent.length);
        self.fill(at, run);
        before
    }

    /// Maps blocks that are not allocated.
    fn fill(&mut self, at: u64, run: Run) {
        debug_assert!(run.extent.length > 0);
        let (mut at, mut run) = (at, run);
        let end = at + run.extent.length;
        let mut around = self.0.range(..=end).rev().map(|(at, run)| (*at, *run));
        let mut left = around.next();
        let right = left.filter(|(first, _)| *first == end);
        if right.is_some() {
            left = around.next();
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
    }

    /// Unmaps blocks; returns their extents, in file order.
    pub(super) fn unmap(&mut self, range: Range<u64>) -> Vec<Run> {
        self.split(range.start);
        self.split(range.end);
        let gone: Vec<u64> = self.0.range(range).map(|(at, _)| *at).collect();
        gone.iter().filter_map(|at| self.0.remove(at)).collect()
    }

    /// The allocated parts of a range.
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

    /// Shifts blocks from `range.end` on down to `range.start`; the range is unallocated.
    pub(in crate::store) fn collapse(&mut self, range: Range<u64>) {
        debug_assert!(self.within(range.clone()).is_empty());
        let len = range.end - range.start;
        let behind = self.0.split_off(&range.end);
        for (at, run) in behind {
            self.map(at - len, run);
        }
    }

    /// Shifts blocks from `at` on up by `blocks`.
    pub(in crate::store) fn insert(&mut self, at: u64, blocks: u64) {
        self.split(at);
        let behind = self.0.split_off(&at);
        self.0
            .extend(behind.into_iter().map(|(at, run)| (at + blocks, run)));
    }

    /// Splits a run at this block.
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
            generation: 1,
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
