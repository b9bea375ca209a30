//! Blocks that were written alone, and are to lie beside their neighbours.
//!
//! Where blocks come in random order and far apart, each commit lets those lie in a row that waited for it together. A block
//! whose neighbour in the file came with an earlier commit would lie elsewhere for ever, and be an extent more. So a commit
//! takes short neighbours of what it places along: they are written once more, and both lie in one place.

use super::{Content, Form};
use crate::BLOCK;
use crate::space::Extent;
use crate::store::file::delayed_allocation::is_far_apart;
use crate::store::file::extent_map::{Mapping, Run};
use crate::store::file::page::Changed;

/// Runs with where they begin in the file.
pub(in crate::store) type Runs = Vec<(u64, Run)>;

/// Longer ones stay where they are: they are few.
const SHORT: u64 = 8;
/// This part of what waits is written in addition, at most, and so many blocks in any case.
const ADDED_PART: usize = 32;
const FEW: usize = 8;
/// Runs that are passed one by one before the next is searched for.
const STEPS_MAX: u32 = 16;

/// Blocks of a file that are to be placed once more, and what is in them.
#[derive(Debug)]
pub(in crate::store) struct Neighbours {
    at: u64,
    run: Run,
    bytes: Vec<u8>,
}

impl Neighbours {
    /// Those from block `at` of the file on, all of this run, which has these bytes.
    pub(in crate::store) fn new(at: u64, run: Run, bytes: Vec<u8>) -> Self {
        debug_assert_eq!(bytes.len() as u64, run.extent.length * BLOCK as u64);
        Self { at, run, bytes }
    }

    /// How many they are.
    pub(in crate::store) fn blocks(&self) -> u64 {
        self.run.extent.length
    }
}

impl Content {
    /// The blocks that wait, ascending, if it is worth bringing them together with their neighbours.
    pub(in crate::store) fn waiting_far_apart(&self) -> Option<Vec<u64>> {
        match &self.form {
            Form::Mapped { mapping, dirty } if is_far_apart(dirty) && !mapping.is_empty() => {
                Some(dirty.numbers())
            }
            _ => None,
        }
    }

    /// Short runs beside those of these blocks that have no place; both ascending.
    pub(in crate::store) fn neighbours(&self, waiting: &[u64]) -> Runs {
        match &self.form {
            Form::Mapped { mapping, .. } => short_runs(mapping, waiting),
            Form::Inline(_) => Vec::new(),
        }
    }

    /// Short runs beside blocks that have come to those that waited, ascending.
    pub(in crate::store) fn neighbours_since(&self, waited: &[u64]) -> Runs {
        let Form::Mapped { mapping, dirty } = &self.form else {
            return Vec::new();
        };
        let mut waited = waited.iter().peekable();
        let mut new = dirty.numbers();
        new.retain(|block| {
            while waited.next_if(|before| *before < block).is_some() {}
            waited.peek() != Some(&block)
        });
        short_runs(mapping, &new)
    }

    /// Lets neighbours wait for a place again that are still where they were, and gives up the places that they have. So much
    /// must be done in the commit that has read them.
    pub(in crate::store) fn take_along(&mut self, neighbours: Vec<Neighbours>) -> Vec<Extent> {
        let Form::Mapped { mapping, dirty } = &mut self.form else {
            return Vec::new();
        };
        let mut left = Vec::new();
        for Neighbours { at, run, bytes } in neighbours {
            if mapping.find(at) != Some(run) {
                continue;
            }
            let (pages, _) = bytes.as_chunks::<BLOCK>();
            for (block, page) in (at..).zip(pages) {
                let mut page = Box::new(*page);
                if let Some(changed) = dirty.get(block) {
                    changed.show_in(&mut page);
                }
                dirty.put(block, Changed::Whole(page), false);
            }
            mapping.unmap(at..at + run.extent.length);
            left.push(run.extent);
        }
        left
    }
}

fn short_runs(mapping: &Mapping, waiting: &[u64]) -> Runs {
    let most = (waiting.len() / ADDED_PART).max(FEW) as u64;
    let mut found: Runs = Vec::new();
    let mut blocks = 0;
    let mut around = Vec::new();
    let mut runs = mapping
        .behind(waiting.first().map_or(0, |first| first.saturating_sub(1)))
        .peekable();
    for row in waiting.chunk_by(|one, next| one + 1 == *next) {
        let (first, end) = (row[0], row[0] + row.len() as u64);
        let before = first.saturating_sub(1);
        let passed = |(at, run): &(u64, Run)| at + run.extent.length <= before;
        let mut steps = 0;
        while runs.next_if(passed).is_some() {
            steps += 1;
            if steps == STEPS_MAX {
                runs = mapping.behind(before).peekable();
            }
        }
        let mut bare = end - first;
        around.clear();
        while let Some((at, run)) = runs.next_if(|(at, _)| *at <= end) {
            bare -= (at + run.extent.length)
                .min(end)
                .saturating_sub(at.max(first));
            around.push((at, run));
        }
        // The last one may be beside the next row as well.
        if let Some((at, _)) = around.last() {
            runs = mapping.behind(*at).peekable();
        }
        if bare == 0 {
            continue;
        }
        for (at, run) in &around {
            let known = found.last().is_some_and(|(last, _)| last == at);
            if known || run.unwritten || run.extent.length > SHORT {
                continue;
            }
            if blocks + run.extent.length > most {
                return found;
            }
            blocks += run.extent.length;
            found.push((*at, *run));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(runs: &[(u64, u64, u64, bool)]) -> Mapping {
        let mut mapping = Mapping::default();
        for &(at, start, length, unwritten) in runs {
            let extent = Extent::new(start, length);
            let birth = 1;
            let run = Run {
                extent,
                birth,
                unwritten,
            };
            mapping.fill(at, run);
        }
        mapping
    }

    fn short(mapping: &Mapping, waiting: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let waiting: Vec<u64> = waiting.into_iter().collect();
        let runs = short_runs(mapping, &waiting);
        runs.iter().map(|(at, _)| *at).collect()
    }

    #[test]
    fn written_short_runs_beside_what_has_no_place_are_neighbours() {
        let mapping = placed(&[
            (10, 500, 1, false),
            (20, 510, SHORT, false),
            (40, 520, SHORT + 1, false),
            (60, 540, 1, true),
            (70, 550, 1, false),
            (72, 560, 1, false),
        ]);
        assert_eq!(short(&mapping, [9]), [10]);
        assert_eq!(short(&mapping, [11]), [10]);
        assert_eq!(short(&mapping, [10, 11]), [10], "written over");
        assert_eq!(short(&mapping, [8, 12]), [0; 0]);
        assert_eq!(short(&mapping, [10, 20, 21]), [0; 0], "nothing is placed");
        assert_eq!(short(&mapping, [19]), [20]);
        assert_eq!(short(&mapping, [28]), [20]);
        assert_eq!(short(&mapping, [39]), [0; 0], "long");
        assert_eq!(short(&mapping, [61]), [0; 0], "never written");
        assert_eq!(short(&mapping, [69, 71, 73]), [70, 72]);
    }

    #[test]
    fn what_came_since_has_neighbours_as_well() {
        let mapping = placed(&[(10, 500, 1, false), (20, 510, 1, false)]);
        let mut content = Content::mapped(1 << 20, mapping);
        let Form::Mapped { dirty, .. } = &mut content.form else {
            unreachable!("made so");
        };
        for block in [9, 21, 30] {
            dirty.put(block, Changed::Parts(Vec::new()), false);
        }
        let since = |waited: &[u64]| -> Vec<u64> {
            let runs = content.neighbours_since(waited).into_iter();
            runs.map(|(at, _)| at).collect()
        };
        assert_eq!(since(&[]), [10, 20]);
        assert_eq!(since(&[5, 9, 30]), [20]);
        assert_eq!(since(&[9, 20, 21, 22]), [0; 0]);
    }

    #[test]
    fn little_is_written_in_addition() {
        let all: Vec<_> = (0..10_000)
            .map(|at| (2 * at, 50_000 + 3 * at, 1, false))
            .collect();
        let mapping = placed(&all);
        let beside = |count: u64| short(&mapping, (0..count).map(|at| 2 * at + 1)).len();
        assert_eq!([beside(1), beside(4), beside(100)], [2, 5, FEW]);
        assert_eq!(beside(6400), 6400 / ADDED_PART);
    }

    #[test]
    fn what_changed_meanwhile_stays_and_what_waits_is_shown_in_it() {
        let one = Run {
            extent: Extent::new(500, 2),
            birth: 1,
            unwritten: false,
        };
        let other = Run {
            extent: Extent::new(700, 1),
            ..one
        };
        let mut content = Content::mapped(1 << 20, placed(&[(10, 500, 2, false)]));
        let Form::Mapped { mapping, dirty } = &mut content.form else {
            unreachable!("made so");
        };
        mapping.fill(30, other);
        dirty.put(11, Changed::part(512, &[9; 512]), false);
        let moved = Run {
            extent: Extent::new(701, 1),
            ..one
        };
        let along = vec![
            Neighbours::new(10, one, vec![3; 2 * BLOCK]),
            Neighbours::new(30, moved, vec![4; BLOCK]),
        ];
        assert_eq!(content.take_along(along), [one.extent]);
        let Form::Mapped { mapping, dirty } = &content.form else {
            unreachable!("made so");
        };
        assert_eq!(mapping.iter().collect::<Vec<_>>(), [(30, other)]);
        assert_eq!(dirty.numbers(), [10, 11]);
        let Some(Changed::Whole(page)) = dirty.get(11) else {
            panic!("not whole");
        };
        assert!(
            page[..512] == [3; 512] && page[512..1024] == [9; 512] && page[1024..] == [3; 3072]
        );
    }
}
