//! Groups of neighbours, found by their number.
//!
//! A file that is written here and there asks for another group each time. In an ordered tree each step of that is a branch
//! that nobody can foretell; so they are found by hash, and their order is kept beside.
//!
//! *Invariant.* `order` has the numbers of all groups that `by_number` has, and no others.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use foldhash::fast::RandomState;

use super::super::page::Changed;
use super::Counts;

/// Neighbours that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) there: u64,
    pub(super) full: u64,
    pub(super) going: u64,
    pub(super) early: u64,
    pub(super) placed: u64,
    pub(super) pages: Vec<Changed>,
}

impl Group {
    /// Where the page of a bit is among those that are there.
    pub(super) fn place(&self, bit: u64) -> usize {
        (self.there & (bit - 1)).count_ones() as usize
    }

    /// Is anything [counted](Counts) of the page of this bit but that it is there?
    pub(super) fn is_counted(&self, bit: u64) -> bool {
        (self.full | self.going | self.early) & bit != 0
    }

    /// The page of this bit changes, and is full then or not.
    pub(super) fn changes(&mut self, bit: u64, full: bool, counts: &mut Counts) {
        if self.early & bit != 0 {
            counts.spoilt += 1;
        }
        counts.forget(self.full & bit, self.early & bit);
        for bits in [&mut self.full, &mut self.going, &mut self.early] {
            *bits &= !bit;
        }
        if full {
            self.full |= bit;
            counts.full += 1;
        }
    }
}

/// Groups by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    by_number: HashMap<u64, Group, RandomState>,
    order: BTreeSet<u64>,
}

impl Groups {
    pub(super) fn get(&self, number: u64) -> Option<&Group> {
        self.by_number.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Group> {
        self.by_number.get_mut(&number)
    }

    /// The group of this number: a new one, if there is none.
    pub(super) fn or_new(&mut self, number: u64) -> &mut Group {
        let order = &mut self.order;
        self.by_number.entry(number).or_insert_with(|| {
            order.insert(number);
            Group::default()
        })
    }

    pub(super) fn remove(&mut self, number: u64) {
        if self.by_number.remove(&number).is_some() {
            self.order.remove(&number);
        }
    }

    /// Those of these numbers, ascending.
    pub(super) fn range(&self, numbers: Range<u64>) -> impl Iterator<Item = (u64, &Group)> {
        let numbers = self.order.range(numbers);
        numbers.map(|number| (*number, &self.by_number[number]))
    }

    /// All, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Group)> {
        self.order
            .iter()
            .map(|number| (*number, &self.by_number[number]))
    }

    /// All, in any order.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.by_number.values_mut()
    }

    /// Shows those from this number on, ascending, until one is shown in vain.
    pub(super) fn each_from(&mut self, first: u64, mut show: impl FnMut(u64, &mut Group) -> bool) {
        for number in self.order.range(first..) {
            let group = self.by_number.get_mut(number);
            if !group.is_some_and(|group| show(*number, group)) {
                return;
            }
        }
    }

    /// All of them, ascending.
    pub(super) fn into_ascending(mut self) -> impl Iterator<Item = (u64, Group)> {
        let numbers = std::mem::take(&mut self.order).into_iter();
        numbers.filter_map(move |number| Some((number, self.by_number.remove(&number)?)))
    }
}
