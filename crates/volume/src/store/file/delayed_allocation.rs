//! What is asked of space for blocks of a file that are about to be written.

use std::ops::Range;

use super::dirty_pages::Dirty;
use super::extent_map::{Mapping, Run};
use crate::Result;
use crate::space::{Extent, FileRequest, GROUP_BLOCKS_MAX, Mapped, Window};

/// Where places come from.
pub(in crate::store) trait Places {
    /// Takes blocks that were set aside for this place in the file, where it has none, maybe fewer.
    fn aside(&mut self, logical: u64, blocks: u64) -> Option<Run>;

    /// Finds room for what is asked for, maybe for less.
    ///
    /// # Errors
    /// If there is none.
    fn find(&mut self, request: &FileRequest) -> Result<Run>;
}

/// A piece is worth setting aside where so much of it, at least, has a place or waits for one.
const WORTHWHILE_PART: u64 = 12;

/// Where that is so of all that waits in a stretch of at least so many blocks, half of it is enough in each piece: of what
/// comes in random order some pieces have had less than others so far, and would lie in pieces for ever.
const STRETCH_MIN: u64 = 16 * 2048;

/// Blocks of rows far apart that get their places at once, at most.
const ALIKE_MAX: u64 = 1024;

/// Runs that are passed one by one before the next is searched for.
const STEPS_MAX: u32 = 16;

/// Of files whose blocks lie within less there is never much to be written early.
const READY_SPREAD_MIN: u64 = 1024;

/// This part of the stretch that a file's blocks lie in must wait before any is written: with a few more than
/// [`WORTHWHILE_PART`] no piece is left in which fewer do.
const DENSE_PART: u64 = 8;

/// However many may wait, of blocks that lie as far apart as this so few are met in each piece that none is set
/// aside.
const HOPELESS_SPREAD: u64 = 131_072 * WORTHWHILE_PART;

/// How many of a file's blocks that wait a commit may as well take now: waiting longer would neither let more of them
/// lie side by side, nor meet their writer again, as far as one can see.
pub(in crate::store) fn ready(dirty: &Dirty) -> usize {
    if is_far_apart(dirty) {
        dirty.len()
    } else if is_dense(dirty) {
        dirty.full()
    } else {
        0
    }
}

/// Do blocks that wait lie so far apart that no piece of the file is worth being set aside?
fn is_far_apart(dirty: &Dirty) -> bool {
    dirty.spread() > HOPELESS_SPREAD
}

/// Do blocks that wait lie so near to each other that all lie in pieces that will be set aside, or nearly all?
fn is_dense(dirty: &Dirty) -> bool {
    let spread = dirty.spread();
    spread >= READY_SPREAD_MIN && dirty.len() as u64 * DENSE_PART >= spread
}

/// What is asked for blocks from `first` on that have no place: as many as there are before the next
/// that has one, at most `row`. Nothing more is set aside.
pub(in crate::store) fn missing(mapping: &Mapping, first: u64, row: u64, size: u64) -> FileRequest {
    let mapped = |(logical, run): (u64, Run)| Mapped {
        logical,
        extent: run.extent,
    };
    let after = mapping.next(first).map(mapped);
    let length = after.map_or(row, |after| row.min(after.logical - first));
    FileRequest {
        size,
        growing: false,
        scattered: true,
        before: mapping.before(first).map(mapped),
        after,
        ..FileRequest::new(first, length)
    }
}

/// The blocks of a file that wait to be written, ascending.
pub(in crate::store) struct Waiting {
    blocks: Vec<u64>,
    /// Blocks of the file.
    size: u64,
    /// May it grow?
    growing: bool,
    /// The part of a piece that is worth setting it aside.
    worthwhile: u64,
    /// The window looked at last, and whether little of it is written.
    judged: Option<(Window, bool)>,
    /// The row that was counted last, by the places in it.
    counted: Range<usize>,
    /// What got its place last, which the mapping need not have yet.
    placed: Option<Mapped>,
}

impl Waiting {
    /// These blocks of a file of so many.
    pub(in crate::store) fn new(blocks: Vec<u64>, size: u64, mapping: &Mapping) -> Self {
        // A file that is written for the first time, all of it, is likely to be complete.
        let growing = !mapping.is_empty() || blocks.len() as u64 != size;
        let stretch = match blocks[..] {
            [first, .., last] => last - first + 1,
            _ => 1,
        };
        let dense = blocks.len() as u64 * WORTHWHILE_PART >= stretch;
        let worthwhile = match dense && stretch >= STRETCH_MIN {
            true => 2 * WORTHWHILE_PART,
            false => WORTHWHILE_PART,
        };
        Self {
            blocks,
            size,
            growing,
            worthwhile,
            judged: None,
            counted: 0..0,
            placed: None,
        }
    }

    /// These have their places, whether the mapping has them already or not.
    pub(in crate::store) fn placed(&mut self, logical: u64, extent: Extent) {
        self.placed = Some(Mapped { logical, extent });
    }

    /// The block at this place among those that wait, and how many follow each other from there on.
    pub(in crate::store) fn row(&mut self, place: usize) -> Option<(u64, u64)> {
        let (&first, _) = self.blocks.get(place..)?.split_first()?;
        // A long row that has its places in many pieces is asked for as often, and counted once.
        if !self.counted.contains(&place) {
            let row = self.blocks[place..].iter().zip(first..);
            let length = row.take_while(|(at, expected)| **at == *expected).count();
            self.counted = place..place + length;
        }
        Some((first, (self.counted.end - place) as u64))
    }

    /// What is asked for a row at `place` that has no place.
    pub(in crate::store) fn request(
        &mut self,
        mapping: &Mapping,
        place: usize,
        first: u64,
        row: u64,
    ) -> FileRequest {
        let mut request = missing(mapping, first, row, self.size);
        let later = |before: &Mapped| self.placed.is_none_or(|it| it.logical <= before.logical);
        request.before = request.before.filter(later).or(self.placed);
        request.growing = self.growing;
        request.scattered = self.is_scattered(place, &request, mapping);
        request
    }

    /// The rows that get their places with what is asked for, which is at `place`: its own, and if little is
    /// written around there those that follow of which the same is true. So they lie side by side, and
    /// are looked for once.
    pub(in crate::store) fn alike(
        &mut self,
        place: usize,
        request: &FileRequest,
        mapping: &Mapping,
    ) -> Vec<(u64, u64)> {
        let mut rows = vec![(request.logical, request.length)];
        if !request.scattered {
            return rows;
        }
        let (mut place, mut blocks) = (place + request.length as usize, request.length);
        let mut behind = mapping.behind(request.end()).peekable();
        let mut steps = 0;
        while blocks < ALIKE_MAX
            && let Some((first, row)) = self.row(place)
        {
            // Up to the next block that has a place, which may be this one.
            while behind
                .next_if(|(at, run)| at + run.extent.length <= first)
                .is_some()
            {
                steps += 1;
                if steps % STEPS_MAX == 0 {
                    behind = mapping.behind(first).peekable();
                }
            }
            let bare = behind.peek().map_or(u64::MAX, |(at, _)| *at);
            let row = row.min(bare.saturating_sub(first));
            let alone = FileRequest {
                size: self.size,
                ..FileRequest::new(first, row.max(1))
            };
            // What is at the end is judged by what is before it.
            if row == 0 || alone.end() >= self.size || !self.is_scattered(place, &alone, mapping) {
                break;
            }
            // Half of it would get a place elsewhere.
            if blocks + row > ALIKE_MAX {
                break;
            }
            rows.push((first, row));
            place += row as usize;
            blocks += row;
        }
        rows
    }

    /// Is little written around there, as far as one can see? The request is for what is at `place`.
    fn is_scattered(&mut self, place: usize, request: &FileRequest, mapping: &Mapping) -> bool {
        let goes_on = |before: Mapped| before.logical + before.extent.length == request.logical;
        if request.end() >= self.size && request.before.is_none_or(goes_on) {
            // It grows at its end.
            return false;
        }
        let whole = FileRequest {
            before: None,
            after: None,
            ..*request
        };
        let Some(window) = Window::of(&whole, GROUP_BLOCKS_MAX) else {
            return true;
        };
        if let Some((judged, scattered)) = self.judged
            && judged == window
        {
            return scattered;
        }
        let enough = window.length().div_ceil(self.worthwhile);
        // No more than these can tell: numbers ascend, so as many as are enough reach from any place.
        let near = |from: usize, to: usize| &self.blocks[from..to.min(self.blocks.len())];
        let before = near(place.saturating_sub(enough as usize), place);
        let behind = near(place, place + enough as usize);
        let before = before.len() - before.partition_point(|block| *block < window.start);
        let behind = behind.partition_point(|block| *block < window.end);
        let mut seen = (before + behind) as u64;
        // What waits may have a place already, and counts twice: then it is written often.
        for (first, run) in mapping.behind(window.start) {
            if first >= window.end || seen >= enough {
                break;
            }
            let end = (first + run.extent.length).min(window.end);
            seen += end - first.max(window.start);
        }
        let scattered = seen < enough;
        self.judged = Some((window, scattered));
        scattered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Extent;
    use crate::store::file::page::Changed;

    /// Blocks of 8 MiB.
    const WINDOW: u64 = 2048;

    fn asked(mapping: &Mapping, blocks: impl Iterator<Item = u64>, size: u64) -> Vec<bool> {
        let mut waiting = Waiting::new(blocks.collect(), size, mapping);
        let mut place = 0;
        let mut asked = Vec::new();
        while let Some((first, row)) = waiting.row(place) {
            asked.push(waiting.request(mapping, place, first, row).sets_aside());
            place += row as usize;
        }
        asked
    }

    #[test]
    fn room_is_set_aside_where_much_is_written_and_not_where_little_is() {
        let (none, size) = (Mapping::default(), 100 * WINDOW);
        let dense = (0..WINDOW).step_by(6);
        assert!(asked(&none, dense, size).into_iter().all(|aside| aside));
        let sparse = (WINDOW..9 * WINDOW).step_by(16);
        assert!(asked(&none, sparse, size).into_iter().all(|aside| !aside));
    }

    #[test]
    fn what_comes_in_random_order_lies_in_no_pieces() {
        let (none, size) = (Mapping::default(), 200 * WINDOW);
        let numbers = (0..size).map(|at| (at * 2_654_435_761) % 4_294_967_291);
        let tenth: Vec<u64> = (0..)
            .zip(numbers)
            .filter(|(_, it)| it % 10 == 3)
            .map(|(at, _)| at)
            .collect();
        // By chance this one has had half as much as the others.
        let mut few = 0;
        let blocks = tenth.into_iter().filter(|at| {
            let here = at / WINDOW == 98;
            few += u32::from(here);
            !here || few % 2 == 0
        });
        let blocks: Vec<u64> = blocks.collect();
        let asked_of = |blocks: &[u64]| asked(&none, blocks.iter().copied(), size);
        assert!(asked_of(&blocks).into_iter().all(|aside| aside));
        let there = blocks.iter().filter(|at| **at / WINDOW == 98);
        let alone: Vec<u64> = there.copied().collect();
        assert!(
            asked_of(&alone).into_iter().all(|aside| !aside),
            "of itself it is little"
        );
    }

    #[test]
    fn rows_far_apart_are_placed_together_up_to_what_has_a_place() {
        let mut mapping = Mapping::default();
        let run = Run {
            extent: Extent::new(5000, 1),
            birth: 1,
            unwritten: false,
        };
        mapping.map(7 * WINDOW + 1, run);
        let blocks = (0..9).flat_map(|number| [number * WINDOW, number * WINDOW + 1]);
        let mut waiting = Waiting::new(blocks.collect(), 100 * WINDOW, &mapping);
        let (first, row) = waiting.row(2).unwrap();
        let request = waiting.request(&mapping, 2, first, row);
        let mut expected: Vec<(u64, u64)> = (1..7).map(|number| (number * WINDOW, 2)).collect();
        expected.push((7 * WINDOW, 1));
        assert_eq!(waiting.alike(2, &request, &mapping), expected);
        let dense: Vec<u64> = (0..WINDOW).step_by(3).collect();
        let mut waiting = Waiting::new(dense, 100 * WINDOW, &mapping);
        let request = waiting.request(&mapping, 0, 0, 1);
        assert_eq!(waiting.alike(0, &request, &mapping), [(0, 1)]);
    }

    #[test]
    fn what_has_a_place_already_counts() {
        let mut mapping = Mapping::default();
        for at in (0..WINDOW).step_by(7) {
            let extent = Extent::new(10_000 + 2 * at, 1);
            let (birth, unwritten) = (1, false);
            mapping.map(
                at,
                Run {
                    extent,
                    birth,
                    unwritten,
                },
            );
        }
        assert_eq!(
            asked(&mapping, [5, WINDOW + 5].into_iter(), 100 * WINDOW),
            [true, false]
        );
    }

    #[test]
    fn a_file_that_grows_at_its_end_has_room_set_aside_and_a_complete_one_has_not() {
        let mut mapping = Mapping::default();
        assert_eq!(asked(&mapping, 0..300, 300), [false]);
        let run = Run {
            extent: Extent::new(5000, 300),
            birth: 1,
            unwritten: false,
        };
        mapping.map(0, run);
        assert_eq!(asked(&mapping, 300..301, 301), [true]);
    }
    #[test]
    fn what_is_full_or_lies_too_far_apart_need_not_wait() {
        let (few, all) = (256, 2048);
        let ready = |step: u64, full: u64| {
            let mut dirty = Dirty::default();
            for at in 0..all {
                dirty.put(at * step, Changed::part(0, &[1; 512]), at < full);
            }
            ready(&dirty) as u64
        };
        let apart = HOPELESS_SPREAD / all;
        assert_eq!(ready(apart, few), 0, "more may come between");
        assert_eq!(ready(apart + 2, few), all);
        assert_eq!(ready(7, few), few);
        assert_eq!(ready(7, all), all);
        assert_eq!(ready(9, few), 0, "some may lie far from all others");
    }
}
