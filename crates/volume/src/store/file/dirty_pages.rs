//! The blocks of one file that wait to be written.
//!
//! They lie in groups of neighbours: a group is found once in a tree that stays small, and a block in it
//! by counting bits.
//!
//! Full ones may be written *early*, to the places that they will have: then the device has them already when
//! they are taken, unless they were changed meanwhile.
//!
//! *Invariants.* `there` has a bit for each page of a group, in whose order they lie; `full` has one for those
//! of them of which that was said, `going` and `early` for full ones that are written early just now, or were, and
//! did not change since that began, `placed` for those that were given a place; no group is empty; `len` and `counts` count the pages of all.

mod groups;
mod zeroed;

use std::ops::Range;

use holdfast_core::store::ShownPage;

use super::page::Changed;
use crate::space::Extent;
use groups::{Group, Groups};
use zeroed::Zeroed;

const GROUP: u64 = 64;

/// So many pages may be written early in vain, and this part of all in addition.
const FEW_SPOILT: usize = 1024;
const SPOILT_PART: usize = 4;

/// Blocks that changed, by their numbers in the file.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Dirty {
    groups: Groups,
    len: usize,
    counts: Counts,
    /// What all numbers lie in that were put in since it was empty.
    span: Range<u64>,
    /// Places of the file that count as never written, and have bytes that the last commit shows.
    zeroed: Zeroed,
}

/// Pages by what is said of them.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    full: usize,
    early: usize,
    /// How many were written early, and how many of these were so in vain; since it was empty.
    went: usize,
    spoilt: usize,
    /// Are none to be?
    declined: bool,
}

impl Counts {
    fn forget(&mut self, full: u64, early: u64) {
        self.full -= full.count_ones() as usize;
        self.early -= early.count_ones() as usize;
    }
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
        self.counts.full
    }

    /// A place of the file counts as never written from now on, and the last commit shows what it has.
    pub(super) fn note_zeroed(&mut self, place: Extent) {
        self.zeroed.note(place);
    }

    /// The places of which that was noted since its pages were taken last.
    pub(super) fn zeroed(&self) -> &Zeroed {
        &self.zeroed
    }

    /// Takes them out.
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
        group.changes(bit, false, &mut self.counts);
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
            group.changes(bit, full, &mut self.counts);
        }
        renewed
    }

    /// As [`renew`](Self::renew), of a page that is not full, if all counts stay as they are.
    pub(in crate::store) fn renew_part(&mut self, block: u64, page: ShownPage<'_>) -> bool {
        let Some(group) = self.groups.get_mut(block / GROUP) else {
            return false;
        };
        let (bit, place) = (bit(block), group.place(bit(block)));
        group.there & bit != 0
            && !group.is_counted(bit)
            && match &mut group.pages[place] {
                Changed::Kept(kept) => page.renew(kept),
                _ => false,
            }
    }

    /// Says what changed of a block, whatever was known. `full`: all of it is written, and shared with the cache.
    pub(in crate::store) fn put(&mut self, block: u64, changed: Changed, full: bool) {
        let group = self.groups.or_new(block / GROUP);
        let (bit, place) = (bit(block), group.place(bit(block)));
        group.changes(bit, full, &mut self.counts);
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
            self.counts.forget(group.full & going, group.early & going);
            group.there = kept;
            for bits in [
                &mut group.full,
                &mut group.going,
                &mut group.early,
                &mut group.placed,
            ] {
                *bits &= kept;
            }
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

    /// Full pages that were not written early, or are just about to be.
    pub(in crate::store) fn early_left(&self) -> usize {
        self.counts.full - self.counts.early
    }

    /// Were any written early since it was empty?
    pub(in crate::store) fn went_early(&self) -> bool {
        self.counts.went > 0
    }

    /// Were many pages written early in vain, or are none to be?
    pub(in crate::store) fn declines_early(&self) -> bool {
        self.counts.declined || self.counts.spoilt > FEW_SPOILT + self.counts.went / SPOILT_PART
    }

    /// None is to be written early, as long as there are any.
    pub(in crate::store) fn decline_early(&mut self) {
        self.counts.declined = true;
    }

    /// The numbers of those that were not given a place, as far as one was [told](Self::all_placed), ascending.
    pub(in crate::store) fn unplaced(&self) -> Vec<u64> {
        let left = self
            .groups
            .iter()
            .flat_map(|(number, group)| blocks(number, group.there & !group.placed));
        left.collect()
    }

    /// All have a place now.
    pub(in crate::store) fn all_placed(&mut self) {
        for group in self.groups.values_mut() {
            group.placed = group.there;
        }
    }

    /// Begins to write full pages early: the first ones from a block on, at most so many, ascending.
    pub(in crate::store) fn begin_early(&mut self, from: u64, most: usize) -> Vec<(u64, Changed)> {
        let mut found = Vec::new();
        self.groups.each_from(from / GROUP, |number, group| {
            let behind = mask(number, &(from..u64::MAX));
            let wanted = group.full & !group.going & !group.early & behind;
            for block in blocks(number, wanted).take(most - found.len()) {
                let page = group.pages[group.place(bit(block))].clone();
                group.going |= bit(block);
                found.push((block, page));
            }
            found.len() < most
        });
        found
    }

    /// A page that was begun cannot be written early: it was looked at in vain.
    pub(in crate::store) fn refuse_early(&mut self, block: u64) {
        if let Some(group) = self.groups.get_mut(block / GROUP) {
            group.going &= !bit(block);
        }
        self.counts.spoilt += 1;
    }

    /// Pages that were begun, by their numbers, ascending, are written (or not): they need not be again if they did not
    /// change since.
    pub(in crate::store) fn end_early(&mut self, begun: &[u64], written: bool) {
        for some in begun.chunk_by(|one, other| one / GROUP == other / GROUP) {
            let bits = some.iter().fold(0, |bits, block| bits | bit(*block));
            let Some(group) = self.groups.get_mut(some[0] / GROUP) else {
                continue;
            };
            let unchanged = group.going & bits;
            group.going &= !bits;
            if written {
                group.early |= unchanged;
                let early = unchanged.count_ones() as usize;
                self.counts.early += early;
                self.counts.went += some.len();
                self.counts.spoilt += some.len() - early;
            }
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

/// A page that is taken out.
pub(in crate::store) struct Taken {
    pub(in crate::store) block: u64,
    pub(in crate::store) changed: Changed,
    /// Does the device have it already, in the place that it has?
    pub(in crate::store) early: bool,
}

impl IntoIterator for Dirty {
    type Item = Taken;
    type IntoIter = Box<dyn Iterator<Item = Taken>>;

    fn into_iter(self) -> Self::IntoIter {
        let taken = |(number, group): (u64, Group)| {
            let pages = blocks(number, group.there).zip(group.pages);
            pages.map(move |(block, changed)| Taken {
                block,
                changed,
                early: group.early & bit(block) != 0,
            })
        };
        Box::new(self.groups.into_ascending().flat_map(taken))
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
        Begin(u64, usize),
        /// All that was begun, written or not.
        End(bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        // In three stretches of groups.
        let at = (0..3_u64, 0..100_u64).prop_map(|(far, near)| far * 5000 + near);
        prop_oneof![
            6 => at.clone().prop_map(Step::Put),
            1 => (at.clone(), 0..150_u64).prop_map(|(at, len)| Step::Remove(at, at + len)),
            1 => (at.clone(), at.clone()).prop_map(|(from, to)| Step::Shift(from, to)),
            1 => at.clone().prop_map(Step::Touch),
            2 => (at, 0..40_usize).prop_map(|(from, most)| Step::Begin(from, most)),
            2 => any::<bool>().prop_map(Step::End),
        ]
    }

    /// What a plain map has of a block.
    #[derive(Clone, Copy, Debug)]
    struct Naive {
        page: u8,
        full: bool,
        going: bool,
        early: bool,
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
            let mut begun: Vec<u64> = Vec::new();
            for (number, step) in (1..).zip(steps) {
                match step {
                    Step::Put(at) => {
                        // Every third is full.
                        let full = number % 3 == 0;
                        dirty.put(at, page(number), full);
                        let (page, going, early) = (number as u8, false, false);
                        naive.insert(at, Naive { page, full, going, early });
                    }
                    Step::Remove(from, to) => {
                        dirty.remove(from..to);
                        naive.retain(|at, _| !(from..to).contains(at));
                    }
                    Step::Shift(from, to) => {
                        dirty.shift(from, to);
                        let behind = naive.split_off(&from);
                        naive.split_off(&to);
                        let fresh = |it| Naive { full: false, going: false, early: false, ..it };
                        let moved = |(at, it)| (at - from + to, fresh(it));
                        naive.extend(behind.into_iter().map(moved));
                    }
                    Step::Touch(at) => {
                        prop_assert_eq!(dirty.get_mut(at).is_some(), naive.contains_key(&at));
                        let fresh = |it: &mut Naive| (it.full, it.going, it.early) = (false, false, false);
                        naive.get_mut(&at).map(fresh);
                    }
                    Step::Begin(from, most) => {
                        let can = |it: &Naive| it.full && !it.going && !it.early;
                        let can = naive.range_mut(from..).filter(|(_, it)| can(it)).take(most);
                        let expected: Vec<_> = can.map(|(at, it)| { it.going = true; (*at, it.page) }).collect();
                        let found = dirty.begin_early(from, most);
                        begun.extend(found.iter().map(|(at, _)| *at));
                        let found: Vec<_> = found.iter().map(|(at, page)| (*at, shown(page))).collect();
                        prop_assert_eq!(found, expected);
                    }
                    Step::End(written) => {
                        begun.sort_unstable();
                        begun.dedup();
                        dirty.end_early(&begun, written);
                        for at in begun.drain(..) {
                            if let Some(it) = naive.get_mut(&at).filter(|it| it.going) {
                                (it.going, it.early) = (false, written);
                            }
                        }
                    }
                }
                prop_assert_eq!(dirty.len(), naive.len());
                let numbers: Vec<u64> = naive.keys().copied().collect();
                prop_assert!(dirty.spread() >= numbers.last().map_or(0, |last| last - numbers[0] + 1));
                prop_assert_eq!(dirty.numbers(), numbers);
                let full = naive.values().filter(|it| it.full).count();
                let early = naive.values().filter(|it| it.early).count();
                prop_assert_eq!((dirty.full(), dirty.early_left()), (full, full - early));
            }
            let around = |at: u64| [at.saturating_sub(1), at, at + 1, at + GROUP, at + GROUP * GROUP];
            for at in naive.keys().copied().flat_map(around).chain([0, u64::MAX - 1]) {
                prop_assert_eq!(dirty.get(at).map(shown), naive.get(&at).map(|it| it.page));
                prop_assert_eq!(dirty.next(at), naive.range(at..).next().map(|(at, _)| *at));
            }
            let early = dirty.counts.early;
            let all: Vec<_> = dirty.into_iter().map(|it| (it.block, shown(&it.changed), it.early)).collect();
            let expected: Vec<_> = naive.into_iter().map(|(at, it)| (at, it.page, it.early)).collect();
            prop_assert_eq!(all.iter().filter(|(.., early)| *early).count(), early);
            prop_assert_eq!(all, expected);
        }
    }
}
