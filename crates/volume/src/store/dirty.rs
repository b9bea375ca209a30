//! The blocks of one file that wait to be written.
//!
//! They lie in groups of neighbours: a group is found once in a tree that stays small, and a block in it
//! by counting bits.
//!
//! *Invariants.* `there` has a bit for each page of a group, in whose order they lie; `full` has one for those
//! of them of which that was said; no group is empty; `len` and `full` count the pages of all.

use std::collections::BTreeMap;
use std::ops::Range;

use super::page::Changed;

const GROUP: u64 = 64;

/// Blocks that changed, by their numbers in the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    groups: BTreeMap<u64, Group>,
    len: usize,
    full: usize,
    /// What all numbers lie in that were put in since it was empty.
    span: Range<u64>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    there: u64,
    full: u64,
    pages: Vec<Changed>,
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

impl Group {
    fn place(&self, bit: u64) -> usize {
        (self.there & (bit - 1)).count_ones() as usize
    }
}

impl Dirty {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many of them were full when they were put in last, as far as was said.
    pub(super) fn full(&self) -> usize {
        self.full
    }

    /// How far they lie apart, at most: blocks from the first to the last.
    pub(super) fn spread(&self) -> u64 {
        self.span.end - self.span.start
    }

    /// What changed of a block.
    pub(super) fn get(&self, block: u64) -> Option<&Changed> {
        let group = self.groups.get(&(block / GROUP))?;
        (group.there & bit(block) != 0).then(|| &group.pages[group.place(bit(block))])
    }

    /// What changed of a block, to be changed.
    pub(super) fn get_mut(&mut self, block: u64) -> Option<&mut Changed> {
        let group = self.groups.get_mut(&(block / GROUP))?;
        let place = group.place(bit(block));
        (group.there & bit(block) != 0).then(|| &mut group.pages[place])
    }

    /// What changed of a block, of which more did just now. `full`: as for [`put`](Self::put).
    pub(super) fn again(&mut self, block: u64, full: bool) -> Option<&mut Changed> {
        let group = self.groups.get_mut(&(block / GROUP))?;
        let (bit, place) = (bit(block), group.place(bit(block)));
        if group.there & bit == 0 {
            return None;
        }
        if full != (group.full & bit != 0) {
            group.full ^= bit;
            self.full = if full { self.full + 1 } else { self.full - 1 };
        }
        Some(&mut group.pages[place])
    }

    /// Says what changed of a block, whatever was known. `full`: whoever fills the file forwards is done with it.
    pub(super) fn put(&mut self, block: u64, changed: Changed, full: bool) {
        let group = self.groups.entry(block / GROUP).or_default();
        let (bit, place) = (bit(block), group.place(bit(block)));
        if full != (group.full & bit != 0) {
            group.full ^= bit;
            self.full = if full { self.full + 1 } else { self.full - 1 };
        }
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
    pub(super) fn within(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let groups = range.start / GROUP..range.end.div_ceil(GROUP).max(range.start / GROUP);
        self.groups
            .range(groups)
            .flat_map(move |(group, pages)| blocks(*group, pages.there & mask(*group, &range)))
    }

    /// The first block at or behind this one that waits.
    pub(super) fn next(&self, block: u64) -> Option<u64> {
        self.within(block..u64::MAX).next()
    }

    /// Forgets the blocks of a range.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        drop(self.take(range));
    }

    /// Takes the blocks of a range out, ascending.
    fn take(&mut self, range: Range<u64>) -> Vec<(u64, Changed)> {
        let mut taken = Vec::new();
        if range.is_empty() {
            return taken;
        }
        let (first, last) = (range.start / GROUP, (range.end - 1) / GROUP);
        let groups: Vec<u64> = self.groups.range(first..=last).map(|(at, _)| *at).collect();
        for number in groups {
            let Some(group) = self.groups.get_mut(&number) else {
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
                self.groups.remove(&number);
            }
        }
        self.len -= taken.len();
        taken
    }

    /// Blocks from `from` on become those from `to` on; blocks between are forgotten.
    pub(super) fn shift(&mut self, from: u64, to: u64) {
        let behind = self.take(from..u64::MAX);
        self.remove(to..u64::MAX);
        for (block, page) in behind {
            self.put(block - from + to, page, false);
        }
    }

    /// The numbers of all, ascending.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.within(0..u64::MAX).collect()
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
    type IntoIter = Box<dyn Iterator<Item = Self::Item>>;

    fn into_iter(self) -> Self::IntoIter {
        let groups = self.groups.into_iter();
        Box::new(groups.flat_map(|(number, group)| blocks(number, group.there).zip(group.pages)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Put(u64),
        Remove(u64, u64),
        Shift(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = 0..300_u64;
        prop_oneof![
            6 => at.clone().prop_map(Step::Put),
            1 => (at.clone(), 0..150_u64).prop_map(|(at, len)| Step::Remove(at, at + len)),
            1 => (at.clone(), at).prop_map(|(from, to)| Step::Shift(from, to)),
        ]
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
            let (mut dirty, mut naive) = (Dirty::default(), BTreeMap::new());
            for (number, step) in (1..).zip(steps) {
                match step {
                    Step::Put(at) => {
                        // Every third is full.
                        let full = number % 3 == 0;
                        dirty.put(at, page(number), full);
                        naive.insert(at, (number as u8, full));
                    }
                    Step::Remove(from, to) => {
                        dirty.remove(from..to);
                        naive.retain(|at, _| !(from..to).contains(at));
                    }
                    Step::Shift(from, to) => {
                        dirty.shift(from, to);
                        let behind = naive.split_off(&from);
                        naive.split_off(&to);
                        let moved = |(at, (page, _))| (at - from + to, (page, false));
                        naive.extend(behind.into_iter().map(moved));
                    }
                }
                prop_assert_eq!(dirty.len(), naive.len());
                let numbers: Vec<u64> = naive.keys().copied().collect();
                prop_assert!(dirty.spread() >= numbers.last().map_or(0, |last| last - numbers[0] + 1));
                prop_assert_eq!(dirty.numbers(), numbers);
                let full = naive.values().filter(|(_, full)| *full).count();
                prop_assert_eq!(dirty.full(), full);
            }
            for at in 0..600 {
                prop_assert_eq!(dirty.get(at).map(shown), naive.get(&at).map(|(page, _)| *page));
                prop_assert_eq!(dirty.next(at), naive.range(at..).next().map(|(at, _)| *at));
            }
            let all: Vec<(u64, u8)> = dirty.into_iter().map(|(at, page)| (at, shown(&page))).collect();
            let expected: Vec<(u64, u8)> = naive.into_iter().map(|(at, (page, _))| (at, page)).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
