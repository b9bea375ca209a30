use super::group::{Range, State};
use super::table::{class, shortest};
use super::{Error, Extent, Kind, Remedy, Reservation, Space};
use crate::primitive::Ordering;

/// A request for adjacent blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The block to begin at if it is free, else near it. `None`: behind this core's last
    /// allocation.
    pub goal: Option<u64>,
    /// The fewest blocks, at least 1.
    pub least: u64,
    /// The most blocks; all of them if there is a run of so many.
    pub wanted: u64,
    /// The use of the blocks.
    pub kind: Kind,
}

impl Request {
    /// `wanted` blocks of data, or fewer.
    #[must_use]
    pub fn data(wanted: u64) -> Self {
        Self {
            goal: None,
            least: 1,
            wanted,
            kind: Kind::Data,
        }
    }

    /// A node of exactly `blocks` blocks.
    #[must_use]
    pub fn node(blocks: u64) -> Self {
        Self {
            goal: None,
            least: blocks,
            wanted: blocks,
            kind: Kind::Node,
        }
    }

    /// The same, near `goal`.
    #[must_use]
    pub fn near(self, goal: u64) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }
}

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
    /// Places adjacent blocks: used from now on. Nodes count as recorded by the checkpoint in
    /// progress, data as soon as it is [recorded](Self::record).
    ///
    /// # Errors
    /// [`Error::Later`], [`Error::Full`].
    pub fn allocate(&self, request: &Request) -> Result<Extent, Error> {
        self.ready()?;
        let (least, wanted) = (
            request.least.max(1),
            request.wanted.max(request.least).max(1),
        );
        for _ in 0..ATTEMPTS {
            let Some(given) = self.counter().take(least, wanted, request.kind) else {
                if self.sweep(wanted) == 0 {
                    break;
                }
                continue;
            };
            if let Some(extent) = self.place(request, least, given) {
                self.counter().put_back(given - extent.length);
                return Ok(extent);
            }
            self.counter().put_back(given);
            // No run is long enough; giving up preallocations may make one.
            if self.sweep(u64::MAX) == 0 {
                break;
            }
        }
        Err(self.shortage(wanted))
    }

    /// Like [`allocate`](Self::allocate), with reserved blocks: no more than are reserved.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::Later`] if no run of free blocks has the requested least length;
    /// never for single blocks.
    ///
    /// # Panics
    /// If fewer blocks are reserved than the least requested.
    pub fn allocate_reserved(
        &self,
        reservation: &mut Reservation,
        request: &Request,
    ) -> Result<Extent, Error> {
        self.ready()?;
        let least = request.least.max(1);
        assert!(
            reservation.blocks() >= least,
            "nobody promised so many blocks"
        );
        let wanted = request.wanted.clamp(least, reservation.blocks());
        for _ in 0..ATTEMPTS {
            if let Some(extent) = self.place(request, least, wanted) {
                reservation.place(extent.length);
                return Ok(extent);
            }
            if least > 1 && self.sweep(u64::MAX) == 0 {
                break;
            }
        }
        Err(self.shortage(wanted))
    }

    fn place(&self, request: &Request, least: u64, wanted: u64) -> Option<Extent> {
        let purpose = match request.kind {
            Kind::Node => Purpose::Node,
            Kind::Data => Purpose::Unrecorded,
        };
        self.search(request.goal, least, wanted, purpose)
    }

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

    /// Frees blocks of a group that were used and not recorded.
    pub(super) fn release(&self, group: u64, state: &mut State, range: Range) -> Result<(), Error> {
        state.release(range)?;
        let most = class(state.free());
        if state.class < most {
            let (start, end) = state.map().run_around(range.from, range.to);
            let class = class(end - start).max(state.class);
            self.table().set_class(group, state, class);
        }
        self.counter().put(u64::from(range.length()));
        Ok(())
    }

    /// The error when `wanted` blocks are not available.
    pub(super) fn shortage(&self, wanted: u64) -> Error {
        let deferred = self.deferred();
        match deferred {
            (0, 0) => Error::Full {
                wanted,
                free: self.counter().balance().0,
            },
            (0, _) => Error::Later {
                remedy: Remedy::Checkpoint,
            },
            (..) => Error::Later {
                remedy: Remedy::Commit,
            },
        }
    }
}

/// Attempts in case other threads take the blocks that a sweep freed.
pub(super) const ATTEMPTS: usize = 3;
