//! Finding runs of free blocks.

use super::group::{Range, State};
use super::table::{class, shortest};
use super::{Extent, Space};
use crate::primitive::Ordering;

/// What the blocks are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A node, recorded by the checkpoint that writes it.
    Node,
    /// Data, or a preallocation: recorded later, if ever.
    Unrecorded,
}

/// A search across groups.
struct Search {
    group: u64,
    offset: u32,
    /// Is a shorter run at the goal preferred to a longer one elsewhere?
    exact: bool,
    least: u32,
    wanted: u32,
    purpose: Purpose,
}

impl Space {
    /// Finds a run and takes it. The caller has reserved `wanted` blocks.
    pub(super) fn search(
        &self,
        goal: Option<u64>,
        least: u64,
        wanted: u64,
        purpose: Purpose,
    ) -> Option<Extent> {
        let layout = self.layout();
        if self.table().count() == 0 {
            return None;
        }
        let least = u32::try_from(least)
            .ok()
            .filter(|&least| u64::from(least) <= layout.room())?;
        let wanted = wanted.min(layout.group_blocks) as u32;
        let cursor = self.cursors.mine();
        // Relaxed: a hint.
        let near = goal.unwrap_or_else(|| cursor.load(Ordering::Relaxed));
        let found = layout.find(near);
        let found = found.filter(|&(group, _)| group < self.table().count());
        let (group, offset) = found.unwrap_or((0, 0));
        let search = Search {
            group,
            offset,
            exact: goal.is_some() && found.is_some(),
            least,
            wanted,
            purpose,
        };
        let extent = self.near_goal(&search).or_else(|| self.anywhere(&search))?;
        if goal.is_none() {
            cursor.store(extent.end(), Ordering::Relaxed);
        }
        Some(extent)
    }

    fn near_goal(&self, search: &Search) -> Option<Extent> {
        let mut state = self.table().lock(search.group);
        let Search { offset, wanted, .. } = *search;
        if search.exact {
            let end = state.map().run_end(offset, offset.saturating_add(wanted));
            if end >= offset.saturating_add(search.least) {
                return Some(self.take(search, search.group, &mut state, offset));
            }
        }
        if state.class < class(wanted) {
            return None;
        }
        let map = state.map();
        let found = map.find(offset, wanted).or_else(|| map.find(0, wanted));
        let found = found.or_else(|| self.correct(search.group, &mut state));
        Some(self.take(search, search.group, &mut state, found?))
    }

    /// Searches all groups: those that surely have the wanted run, those that may, those with
    /// shorter runs.
    fn anywhere(&self, search: &Search) -> Option<Extent> {
        let (sure, maybe) = (
            class(search.wanted.next_power_of_two()),
            class(search.wanted),
        );
        let lowest = class(search.least);
        let shorter = (lowest..=maybe).rev().map(|class| (class, shortest(class)));
        [(sure, search.wanted), (maybe, search.wanted)]
            .into_iter()
            .chain(shorter)
            .map(|(class, run)| (class, run.max(search.least)))
            .find_map(|(class, run)| self.of_class(search, class, run))
            .or_else(|| self.everywhere(search))
    }

    /// Searches groups that may have a run of this class, from the goal's group on. Groups locked
    /// by other threads come last.
    fn of_class(&self, search: &Search, class: u8, run: u32) -> Option<Extent> {
        let mut busy = Vec::new();
        for (mut from, end) in [(search.group, u64::MAX), (0, search.group)] {
            while let Some(group) = self
                .table()
                .next_fit(from, class)
                .filter(|&group| group < end)
            {
                match self.table().try_lock(group) {
                    Some(mut state) => {
                        if let Some(extent) = self.within(search, group, &mut state, run) {
                            return Some(extent);
                        }
                    }
                    None => busy.push(group),
                }
                from = group + 1;
            }
        }
        busy.into_iter()
            .find_map(|group| self.within(search, group, &mut self.table().lock(group), run))
    }

    fn within(&self, search: &Search, group: u64, state: &mut State, run: u32) -> Option<Extent> {
        let found = state.map().find(0, run);
        let found = found.or_else(|| self.correct(group, state));
        Some(self.take(search, group, state, found?))
    }

    /// Searches every group: a hint may have been in flight.
    fn everywhere(&self, search: &Search) -> Option<Extent> {
        (0..self.table().count()).find_map(|group| {
            let mut state = self.table().lock(group);
            if state.free() < search.least {
                return None;
            }
            let found = state.map().find(0, search.least)?;
            Some(self.take(search, group, &mut state, found))
        })
    }

    /// Makes the class of a group exact after a failed search.
    fn correct(&self, group: u64, state: &mut State) -> Option<u32> {
        let longest = state.map().longest();
        self.table().set_class(group, state, class(longest));
        None
    }

    /// Takes the wanted blocks, or as many as the run has.
    fn take(&self, search: &Search, group: u64, state: &mut State, from: u32) -> Extent {
        let to = state.map().run_end(from, from + search.wanted);
        let range = Range { from, to };
        match search.purpose {
            Purpose::Node => state.take_node(range),
            Purpose::Unrecorded => state.take(range),
        }
        if state.free() == 0 {
            self.table().set_class(group, state, 0);
        }
        Extent::new(state.extent().start + u64::from(from), u64::from(to - from))
    }
}
