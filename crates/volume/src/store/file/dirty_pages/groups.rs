//! Groups of neighbours, found by their number.
//!
//! A file that is written here and there asks for another group each time. In an ordered tree each step of that is a branch
//! that nobody can foretell; so it is found by hash among *stretches* of neighbours, whose order is kept beside, and there by
//! counting bits. One that is written far apart has a group for each page, and few stretches.
//!
//! *Invariants.* `order` has the numbers of all stretches that `by_number` has, and no others; no stretch is empty; `there`
//! has a bit for each group of a stretch, in whose order they lie.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use foldhash::fast::RandomState;

use super::{bit, blocks, mask};
use crate::store::file::page::Changed;
use holdfast_sync::collections::{map_bytes, table_bytes};

/// Neighbours that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) there: u64,
    pub(super) full: u64,
    pub(super) pages: Vec<Changed>,
}

impl Group {
    /// Where the page of a bit is among those that are there.
    pub(super) fn place(&self, bit: u64) -> usize {
        (self.there & (bit - 1)).count_ones() as usize
    }

    /// The page of this bit changes, and is full then or not; `count` counts those that are.
    pub(super) fn changes(&mut self, bit: u64, full: bool, count: &mut usize) {
        *count -= usize::from(self.full & bit != 0);
        *count += usize::from(full);
        self.full &= !bit;
        self.full |= if full { bit } else { 0 };
    }
}

/// Groups of a stretch: as many as a group has pages.
const STRETCH: u64 = super::GROUP;

/// Groups by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    by_number: HashMap<u64, Stretch, RandomState>,
    order: BTreeSet<u64>,
}

/// Neighbouring groups.
#[derive(Clone, Debug, Default)]
struct Stretch {
    there: u64,
    groups: Vec<Group>,
}

impl Stretch {
    fn place(&self, bit: u64) -> usize {
        (self.there & (bit - 1)).count_ones() as usize
    }

    /// The groups of some bits, ascending, if this is the stretch of that number.
    fn some(&self, number: u64, bits: u64) -> impl Iterator<Item = (u64, &Group)> {
        blocks(number, self.there & bits).map(|at| (at, &self.groups[self.place(bit(at))]))
    }
}

impl Groups {
    pub(super) fn get(&self, number: u64) -> Option<&Group> {
        let (stretch, bit) = (self.by_number.get(&(number / STRETCH))?, bit(number));
        (stretch.there & bit != 0).then(|| &stretch.groups[stretch.place(bit)])
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Group> {
        let bit = bit(number);
        let stretch = self.by_number.get_mut(&(number / STRETCH))?;
        let place = stretch.place(bit);
        (stretch.there & bit != 0).then(|| &mut stretch.groups[place])
    }

    /// The group of this number: a new one, if there is none.
    pub(super) fn or_new(&mut self, number: u64) -> &mut Group {
        let (order, bit) = (&mut self.order, bit(number));
        let stretch = self.by_number.entry(number / STRETCH).or_insert_with(|| {
            order.insert(number / STRETCH);
            Stretch::default()
        });
        let place = stretch.place(bit);
        if stretch.there & bit == 0 {
            stretch.there |= bit;
            stretch.groups.insert(place, Group::default());
        }
        &mut stretch.groups[place]
    }

    pub(super) fn remove(&mut self, number: u64) {
        let (at, bit) = (number / STRETCH, bit(number));
        let Some(stretch) = self.by_number.get_mut(&at) else {
            return;
        };
        if stretch.there & bit != 0 {
            let place = stretch.place(bit);
            stretch.groups.remove(place);
            stretch.there &= !bit;
        }
        if stretch.there == 0 {
            self.by_number.remove(&at);
            self.order.remove(&at);
        }
    }

    /// Those of these numbers, ascending.
    pub(super) fn range(&self, numbers: Range<u64>) -> impl Iterator<Item = (u64, &Group)> {
        let stretches = numbers.start / STRETCH..numbers.end.div_ceil(STRETCH);
        let stretches = self.order.range(stretches);
        stretches.flat_map(move |at| self.by_number[at].some(*at, mask(*at, &numbers)))
    }

    /// All, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Group)> {
        let stretches = self.order.iter();
        stretches.flat_map(|at| self.by_number[at].some(*at, u64::MAX))
    }

    /// Bytes of memory, but for pages. Goes over the stretches.
    pub(super) fn memory(&self) -> usize {
        let groups = self.by_number.values().map(|stretch| {
            let pages = stretch.groups.iter().map(|group| group.pages.capacity());
            stretch.groups.capacity() * size_of::<Group>()
                + pages.sum::<usize>() * size_of::<Changed>()
        });
        table_bytes::<(u64, Stretch)>(self.by_number.capacity())
            + map_bytes::<u64>(self.order.len())
            + groups.sum::<usize>()
    }

    /// All of them, ascending.
    pub(super) fn into_ascending(mut self) -> impl Iterator<Item = (u64, Group)> {
        let order = std::mem::take(&mut self.order).into_iter();
        let stretches = order.filter_map(move |at| Some((at, self.by_number.remove(&at)?)));
        stretches.flat_map(|(at, stretch)| blocks(at, stretch.there).zip(stretch.groups))
    }
}
