//! Searches in a mapping for blocks that ascend.

use std::collections::btree_map;

use super::{Mapping, Run};

/// Runs that are passed one by one before the next is searched for.
const STEPS_MAX: usize = 6;

/// Goes through a mapping, forwards.
pub(in crate::store) struct Forwards<'m> {
    mapping: &'m Mapping,
    /// The runs behind `next`.
    behind: btree_map::Range<'m, u64, Run>,
    next: Option<(u64, Run)>,
}

impl<'m> Forwards<'m> {
    /// From the first block on.
    pub(super) fn new(mapping: &'m Mapping) -> Self {
        Self {
            mapping,
            behind: mapping.0.range(..),
            next: None,
        }
    }

    /// As [`Mapping::next`]. No block is less than the one before.
    pub(in crate::store) fn next(&mut self, block: u64) -> Option<(u64, Run)> {
        for _ in 0..STEPS_MAX {
            match self.next {
                Some((at, run)) if block < at + run.extent.length => {
                    let skip = block.saturating_sub(at);
                    return Some((at + skip, run.behind(skip)));
                }
                _ => self.next = Some(self.behind.next().map(|(at, run)| (*at, *run))?),
            }
        }
        // Far away.
        let around = self.mapping.0.range(..=block).next_back();
        let from = around.map_or(block, |(at, _)| *at);
        self.behind = self.mapping.0.range(from..);
        self.next = self.behind.next().map(|(at, run)| (*at, *run));
        self.next(block)
    }
}
