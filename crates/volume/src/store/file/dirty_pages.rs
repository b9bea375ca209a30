//! The blocks of one file that wait to be written.
//!
//! They lie in groups of neighbours: a group is found once in a tree that stays small, and a block in it
//! by counting bits.
//!
//! *Invariants.* `there` has a bit for each page of a group, in whose order they lie; `full` has one for those
//! of them of which that was said; no group is empty; `len` and `full` count the pages of all.

mod groups;
mod zeroed;

use std::ops::Range;

use holdfast_core::store::ShownPage;

use super::page::Changed;
use crate::space::Extent;
use groups::{Group, Groups};
use zeroed::Zeroed;

const GROUP: u64 = 64;

/// Blocks that changed, by their numbers in the file.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Dirty {
    groups: Groups,
    len: usize,
    full: usize,
    /// What all numbers lie in that were put in since it was empty.
    span: Range<u64>,
    /// Places of the file that count as never written, and have bytes that the last commit shows.
    zeroed: Zeroed,
}

fn bit(block: u64) -> u64 {
    1 << (block % GROUP)
}

/// The bits of those blocks of a group that lie in a range.
fn mask(group: u64, range: &Range<u64>) -> u64 {
    let base = group * GROUP;
    let from = range.start.clamp(base, base + GROUP) - base;
    let to = range.end.clamp(base, base + GROUP) - base;
    if from >= to {
        return 0;
    }
    (u64::MAX >> (GROUP - (to - from))) << from
}

/// The blocks of a group that have their bits set, ascending.
fn blocks(group: u64, mut bits: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let lowest = bits.trailing_zeros();
        bits &= bits.checked_sub(1)?;
        Some(group * GROUP + u64::from(lowest))
    })
}

impl Dirty {
    /// How many wait.
    pub(in crate::store) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory, but for pages.
    pub(in crate::store) fn memory(&self) -> usize {
        self.groups.memory() + self.zeroed.memory()
    }

    /// How many of them were full when they were put in last, as far as was said.
    pub(in crate::store) fn full(&self) -> usize {
        self.full
    }

    /// A place of the file counts as never written from now on, and the last commit shows what it has.
    pub(super) fn note_zeroed(&mut self, place: Extent) {
        self.zeroed.note(place);
    }

    /// Takes the places out of which that was noted since its pages were taken last.
    pub(super) fn take_zeroed(&mut self) -> Zeroed {
        std::mem::take(&mut self.zeroed)
    }

    /// How far they lie apart, at most: blocks from the first to the last.
    pub(in crate::store) fn spread(&self) -> u64 {
        self.span.end - self.span.start
    }

    /// What changed of a block.
    pub(in crate::store) fn get(&self, block: u64) -> Option<&Changed> {
        let group = self.groups.get(block / GROUP)?;
        (group.there & bit(block) != 0).then(|| &group.pages[group.place(bit(block))])
    }

    /// What changed of a block, to be changed.
    pub(in crate::store) fn get_mut(&mut self, block: u64) -> Option<&mut Changed> {
        let group = self.groups.get_mut(block / GROUP)?;
        let (bit, place) = (bit(block), group.place(bit(block)));
        if group.there & bit == 0 {
            return None;
        }
        group.changes(bit, false, &mut self.full);
        Some(&mut group.pages[place])
    }

    /// Lets what is kept of a block be as it is shown now; `false`: something else is kept. `full`: as for
    /// [`put`](Self::put).
    pub(in crate::store) fn renew(&mut self, block: u64, page: ShownPage<'_>, full: bool) -> bool {
        let Some(group) = self.groups.get_mut(block / GROUP) else {
            return false;
        };
        let (bit, place) = (bit(block), group.place(bit(block)));
        let renewed = group.there & bit != 0
            && match &mut group.pages[place] {
                Changed::Kept(kept) => page.renew(kept),
                _ => false,
            };
        if renewed {
            group.changes(bit, full, &mut self.full);
        }
        renewed
    }

    /// Says what changed of a block, whatever was known. `full`: all of it is written, and shared with the cache.
    pub(in crate::store) fn put(&mut self, block: u64, changed: Changed, full: bool) {
        let group = self.groups.or_new(block / GROUP);
        let (bit, place) = (bit(block), group.place(bit(block)));
        group.changes(bit, full, &mut self.full);
        if group.there & bit != 0 {
            group.pages[place] = changed;
            return;
        }
        group.pages.insert(place, changed);
        group.there |= bit;
        self.span = match self.len {
            0 => block..block + 1,
            _ => self.span.start.min(block)..self.span.end.max(block + 1),
        };
        self.len += 1;
    }

    /// The blocks of a range that wait, ascending.
    pub(in crate::store) fn within(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let groups = range.start / GROUP..range.end.div_ceil(GROUP).max(range.start / GROUP);
        self.groups
            .range(groups)
            .flat_map(move |(group, pages)| blocks(group, pages.there & mask(group, &range)))
    }

    /// The first block at or behind this one that waits.
    pub(in crate::store) fn next(&self, block: u64) -> Option<u64> {
        self.within(block..u64::MAX).next()
    }

    /// Forgets the blocks of a range.
    pub(in crate::store) fn remove(&mut self, range: Range<u64>) {
        drop(self.take(range));
    }

    /// Takes the blocks of a range out, ascending.
    fn take(&mut self, range: Range<u64>) -> Vec<(u64, Changed)> {
        let mut taken = Vec::new();
        if range.is_empty() {
            return taken;
        }
        let (first, last) = (range.start / GROUP, (range.end - 1) / GROUP);
        let groups: Vec<u64> = self
            .groups
            .range(first..last + 1)
            .map(|(at, _)| at)
            .collect();
        for number in groups {
            let Some(group) = self.groups.get_mut(number) else {
                continue;
            };
            let going = group.there & mask(number, &range);
            let kept = group.there & !going;
            let pages = std::mem::take(&mut group.pages);
            for (block, page) in blocks(number, group.there).zip(pages) {
                if going & bit(block) == 0 {
                    group.pages.push(page);
                } else {
                    taken.push((block, page));
                }
            }
            self.full -= (group.full & going).count_ones() as usize;
            group.there = kept;
            group.full &= kept;
            if kept == 0 {
                self.groups.remove(number);
            }
        }
        self.len -= taken.len();
        taken
    }

    /// Blocks from `from` on become those from `to` on; blocks between are forgotten.
    pub(in crate::store) fn shift(&mut self, from: u64, to: u64) {
        let behind = self.take(from..u64::MAX);
        self.remove(to..u64::MAX);
        for (block, page) in behind {
            self.put(block - from + to, page, false);
        }
    }

    /// The numbers of all, ascending.
    pub(in crate::store) fn numbers(&self) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(self.len);
        for (number, group) in self.groups.iter() {
            numbers.extend(blocks(number, group.there));
        }
        numbers
    }
}

impl Extend<(u64, Changed)> for Dirty {
    fn extend<T: IntoIterator<Item = (u64, Changed)>>(&mut self, pages: T) {
        for (block, page) in pages {
            self.put(block, page, false);
        }
    }
}

impl IntoIterator for Dirty {
    type Item = (u64, Changed);
    type IntoIter = Box<dyn Iterator<Item = (u64, Changed)>>;

    fn into_iter(self) -> Self::IntoIter {
        let pages = |(number, group): (u64, Group)| blocks(number, group.there).zip(group.pages);
        Box::new(self.groups.into_ascending().flat_map(pages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Put(u64),
        Remove(u64, u64),
        Shift(u64, u64),
        Touch(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        // In three stretches of groups.
        let at = (0..3_u64, 0..100_u64).prop_map(|(far, near)| far * 5000 + near);
        prop_oneof![
            6 => at.clone().prop_map(Step::Put),
            1 => (at.clone(), 0..150_u64).prop_map(|(at, len)| Step::Remove(at, at + len)),
            1 => (at.clone(), at.clone()).prop_map(|(from, to)| Step::Shift(from, to)),
            1 => at.prop_map(Step::Touch),
        ]
    }

    /// What a plain map has of a block.
    #[derive(Clone, Copy, Debug)]
    struct Naive {
        page: u8,
        full: bool,
    }

    fn page(number: u64) -> Changed {
        Changed::part(0, &[number as u8; 512])
    }

    fn shown(page: &Changed) -> u8 {
        let mut block = [0; crate::BLOCK];
        page.show_in(&mut block);
        block[0]
    }

    proptest! {
        #[test]
        fn it_is_what_a_plain_map_would_be(steps in prop::collection::vec(step(), 1..80)) {
            let (mut dirty, mut naive) = (Dirty::default(), BTreeMap::<u64, Naive>::new());
            for (number, step) in (1..).zip(steps) {
                match step {
                    Step::Put(at) => {
                        // Every third is full.
                        let full = number % 3 == 0;
                        dirty.put(at, page(number), full);
                        naive.insert(at, Naive { page: number as u8, full });
                    }
                    Step::Remove(from, to) => {
                        dirty.remove(from..to);
                        naive.retain(|at, _| !(from..to).contains(at));
                    }
                    Step::Shift(from, to) => {
                        dirty.shift(from, to);
                        let behind = naive.split_off(&from);
                        naive.split_off(&to);
                        let fresh = |it| Naive { full: false, ..it };
                        let moved = |(at, it)| (at - from + to, fresh(it));
                        naive.extend(behind.into_iter().map(moved));
                    }
                    Step::Touch(at) => {
                        prop_assert_eq!(dirty.get_mut(at).is_some(), naive.contains_key(&at));
                        if let Some(it) = naive.get_mut(&at) {
                            it.full = false;
                        }
                    }
                }
                prop_assert_eq!(dirty.len(), naive.len());
                let numbers: Vec<u64> = naive.keys().copied().collect();
                prop_assert!(dirty.spread() >= numbers.last().map_or(0, |last| last - numbers[0] + 1));
                prop_assert_eq!(dirty.numbers(), numbers);
                let full = naive.values().filter(|it| it.full).count();
                prop_assert_eq!(dirty.full(), full);
            }
            let around = |at: u64| [at.saturating_sub(1), at, at + 1, at + GROUP, at + GROUP * GROUP];
            for at in naive.keys().copied().flat_map(around).chain([0, u64::MAX - 1]) {
                prop_assert_eq!(dirty.get(at).map(shown), naive.get(&at).map(|it| it.page));
                prop_assert_eq!(dirty.next(at), naive.range(at..).next().map(|(at, _)| *at));
            }
            let all: Vec<_> = dirty.into_iter().map(|(at, page)| (at, shown(&page))).collect();
            let expected: Vec<_> = naive.into_iter().map(|(at, it)| (at, it.page)).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
