use super::group::Range;
use super::{Extent, Space};

impl Space {
    /// Calls `discard` with runs of free blocks, group by group: those within `within` that are no
    /// shorter than `least`, each at most a group long. The blocks are taken meanwhile, and never
    /// more at once than are unreserved. Returns how many blocks were discarded.
    ///
    /// # Errors
    /// The first of `discard`'s; ends the trim.
    pub fn trim<E>(
        &self,
        within: Extent,
        least: u64,
        mut discard: impl FnMut(Extent) -> Result<(), E>,
    ) -> Result<u64, E> {
        let least = least.max(1);
        let mut trimmed = 0;
        for group in 0..self.table().count() {
            let mut at = 0;
            while let Some((range, extent)) = self.take_run(group, at, within, least) {
                at = range.to;
                let discarded = discard(extent);
                let mut state = self.table().lock(group);
                self.release(group, &mut state, range)
                    .expect("blocks that were claimed");
                drop(state);
                discarded?;
                trimmed += extent.length;
            }
        }
        Ok(trimmed)
    }

    /// Takes the next free run of a group from `at` on, so that nothing is placed there.
    fn take_run(&self, group: u64, at: u32, within: Extent, least: u64) -> Option<(Range, Extent)> {
        let mut state = self.table().lock(group);
        let start = state.extent().start;
        let clip = |block: u64| block.clamp(within.start, within.end());
        let runs = state.map().runs().filter(|&(_, to)| to > at);
        let clipped = runs.map(|(from, to)| {
            let from = clip(start + u64::from(from.max(at)));
            Extent::new(from, clip(start + u64::from(to)).saturating_sub(from))
        });
        let free = clipped.into_iter().find(|run| run.length >= least)?;
        let given = self.counter.take_to_discard(least, free.length)?;
        let extent = Extent::new(free.start, given);
        let from = (extent.start - start) as u32;
        let range = Range {
            from,
            to: from + extent.length as u32,
        };
        state.take(range);
        if state.free() == 0 {
            self.table().set_class(group, &mut state, 0);
        }
        Some((range, extent))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fill, tiny};
    use super::super::*;
    use std::convert::Infallible;

    fn trimmed(space: &Space, within: Extent, least: u64) -> Vec<Extent> {
        let mut runs = Vec::new();
        let total = space.trim(within, least, |run| {
            runs.push(run);
            Ok::<(), Infallible>(())
        });
        assert_eq!(total, Ok(runs.iter().map(|run| run.length).sum()));
        runs
    }

    #[test]
    fn all_that_is_free_and_long_enough_is_trimmed_and_free_afterwards() {
        let layout = tiny(2, 64);
        let space = Space::format(layout).expect("a layout");
        fill(&space);
        let holes = [(4, 3), (20, 5), (70, 2), (100, 9)];
        let holes = holes.map(|(at, length)| Extent::new(layout.start + at, length));
        for hole in holes {
            space.give_back(hole).expect("placed");
        }
        let all = Extent::new(0, u64::MAX);
        assert_eq!(trimmed(&space, all, 1), holes);
        assert_eq!(trimmed(&space, all, 4), [holes[1], holes[3]]);
        let part = Extent::new(layout.start + 22, 80);
        let cut = [Extent::new(part.start, 3), Extent::new(holes[3].start, 2)];
        assert_eq!(trimmed(&space, part, 2), [cut[0], holes[2], cut[1]]);
        assert_eq!(space.report().free, 19);
        assert_eq!(fill(&space).len(), 4);
    }

    #[test]
    fn nobody_gets_a_block_while_it_is_discarded_and_no_promise_is_broken() {
        let space = Space::format(tiny(1, 64)).expect("a layout");
        let reservation = space.reserve(40).expect("room");
        let mut lengths = Vec::new();
        let total = space.trim(Extent::new(0, u64::MAX), 1, |run| {
            lengths.push(run.length);
            let rest = space.allocate(&Request::data(62));
            assert_eq!(rest.is_err(), run.length == 22);
            rest.map_or(Ok(()), |rest| space.give_back(rest))
        });
        assert_eq!(total, Ok(62));
        assert_eq!(lengths, [22, 22, 18]);
        drop(reservation);
        assert_eq!(space.reserve(62).map(drop), Ok(()));
    }

    #[test]
    fn an_error_of_the_device_ends_it_and_loses_no_block() {
        let space = Space::format(tiny(2, 64)).expect("a layout");
        let all = Extent::new(0, u64::MAX);
        assert_eq!(space.trim(all, 1, |_| Err("broken")), Err("broken"));
        assert_eq!(space.report().free, 2 * 62);
        assert_eq!(fill(&space).len(), 2);
    }
}
