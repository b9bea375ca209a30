//! Delayed allocation: what is requested from the allocator for dirty pages.

use std::ops::Range;

use super::extent_map::{Mapping, Run};
use crate::error::Result;
use crate::space::{FileRequest, GROUP_BLOCKS_MAX, Mapped, Window};

/// The allocator of one file's blocks.
pub(in crate::store) trait BlockAllocator {
    /// Takes preallocated blocks for this place in the file, perhaps fewer.
    fn preallocated(&mut self, logical: u64, blocks: u64) -> Option<Run>;

    /// Allocates what is requested, perhaps less.
    ///
    /// # Errors
    /// If there is no space.
    fn find(&mut self, request: &FileRequest) -> Result<Run>;
}

/// A window of the file is preallocated if at least this part of it is allocated or dirty.
const WORTHWHILE_PART: u64 = 12;

/// If that holds for all dirty pages in a range of at least so many blocks, half of it suffices for
/// each window. Otherwise, in a file written in random order, windows that have had few writes so
/// far would stay fragmented.
const STRETCH_MIN: u64 = 16 * 2048;

/// Blocks of distant rows that are allocated together, at most.
const ALIKE_MAX: u64 = 1024;

/// Runs passed one by one before a new search.
const STEPS_MAX: u32 = 16;

/// A request for unallocated blocks from `first` on: up to the next allocated one, at most `row`.
/// Nothing is preallocated.
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

/// The dirty blocks of a file, ascending.
pub(in crate::store) struct Waiting {
    blocks: Vec<u64>,
    /// The file's length in blocks.
    size: u64,
    /// May the file grow?
    growing: bool,
    /// The part of a window from which on it is preallocated.
    worthwhile: u64,
    /// The window judged last, and whether little of it is used.
    judged: Option<(Window, bool)>,
    /// The row counted last, as indices.
    counted: Range<usize>,
}

impl Waiting {
    pub(in crate::store) fn new(blocks: Vec<u64>, size: u64, mapping: &Mapping) -> Self {
        // A file that is written for the first time, as a whole, is probably complete.
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
        }
    }

    /// The dirty block at index `place`, and the length of the row that begins there.
    pub(in crate::store) fn row(&mut self, place: usize) -> Option<(u64, u64)> {
        let (&first, _) = self.blocks.get(place..)?.split_first()?;
        // A long row that gets several extents is asked for as often, but counted once.
        if !self.counted.contains(&place) {
            let row = self.blocks[place..].iter().zip(first..);
            let length = row.take_while(|(at, expected)| **at == *expected).count();
            self.counted = place..place + length;
        }
        Some((first, (self.counted.end - place) as u64))
    }

    /// The request for an unallocated row at index `place`.
    pub(in crate::store) fn request(
        &mut self,
        mapping: &Mapping,
        place: usize,
        first: u64,
        row: u64,
    ) -> FileRequest {
        let mut request = missing(mapping, first, row, self.size);
        request.growing = self.growing;
        request.scattered = self.is_scattered(place, &request, mapping);
        request
    }

    /// The rows to allocate with a request at index `place`: its own, and if it is scattered, the
    /// scattered rows after it. So they become contiguous with one allocation.
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
            // Up to the next allocated block, which may be `first`.
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
            // The file's last blocks are judged by those before them.
            if row == 0 || alone.end() >= self.size || !self.is_scattered(place, &alone, mapping) {
                break;
            }
            // A part of it would be allocated elsewhere.
            if blocks + row > ALIKE_MAX {
                break;
            }
            rows.push((first, row));
            place += row as usize;
            blocks += row;
        }
        rows
    }

    /// Is little of the file used around a request at index `place`?
    fn is_scattered(&mut self, place: usize, request: &FileRequest, mapping: &Mapping) -> bool {
        let goes_on = |before: Mapped| before.logical + before.extent.length == request.logical;
        if request.end() >= self.size && request.before.is_none_or(goes_on) {
            // It appends to the file.
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
        // These indices suffice: blocks ascend, so `enough` of them lie within `enough` indices.
        let near = |from: usize, to: usize| &self.blocks[from..to.min(self.blocks.len())];
        let before = near(place.saturating_sub(enough as usize), place);
        let behind = near(place, place + enough as usize);
        let before = before.len() - before.partition_point(|block| *block < window.start);
        let behind = behind.partition_point(|block| *block < window.end);
        let mut seen = (before + behind) as u64;
        // A dirty block that is allocated counts twice: it is written often.
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

    /// Blocks of 8 MiB.
    const WINDOW: u64 = 2048;

    fn asked(mapping: &Mapping, blocks: impl Iterator<Item = u64>, size: u64) -> Vec<bool> {
        let mut waiting = Waiting::new(blocks.collect(), size, mapping);
        let mut place = 0;
        let mut asked = Vec::new();
        while let Some((first, row)) = waiting.row(place) {
            asked.push(waiting.request(mapping, place, first, row).preallocates());
            place += row as usize;
        }
        asked
    }

    #[test]
    fn room_is_set_aside_where_much_is_written_and_not_where_little_is() {
        let (none, size) = (Mapping::default(), 100 * WINDOW);
        let dense = (0..WINDOW).step_by(6);
        assert!(
            asked(&none, dense, size)
                .into_iter()
                .all(|preallocated| preallocated)
        );
        let sparse = (WINDOW..9 * WINDOW).step_by(16);
        assert!(
            asked(&none, sparse, size)
                .into_iter()
                .all(|preallocated| !preallocated)
        );
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
        // This window happens to have had half as many.
        let mut few = 0;
        let blocks = tenth.into_iter().filter(|at| {
            let here = at / WINDOW == 98;
            few += u32::from(here);
            !here || few % 2 == 0
        });
        let blocks: Vec<u64> = blocks.collect();
        let asked_of = |blocks: &[u64]| asked(&none, blocks.iter().copied(), size);
        assert!(
            asked_of(&blocks)
                .into_iter()
                .all(|preallocated| preallocated)
        );
        let there = blocks.iter().filter(|at| **at / WINDOW == 98);
        let alone: Vec<u64> = there.copied().collect();
        assert!(
            asked_of(&alone)
                .into_iter()
                .all(|preallocated| !preallocated),
            "of itself it is little"
        );
    }

    #[test]
    fn rows_far_apart_are_placed_together_up_to_what_has_a_place() {
        let mut mapping = Mapping::default();
        let run = Run {
            extent: Extent::new(5000, 1),
            generation: 1,
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
            let (generation, unwritten) = (1, false);
            mapping.map(
                at,
                Run {
                    extent,
                    generation,
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
            generation: 1,
            unwritten: false,
        };
        mapping.map(0, run);
        assert_eq!(asked(&mapping, 300..301, 301), [true]);
    }
}
