//! Read-ahead of the children of nodes.
//!
//! A miss right behind the last child that was read below its parent reads several nodes: 16, then
//! 64, then 256 with each further such miss. Any other miss reads one node. The callers do not
//! matter: the rule is the same for cursors, searches and merges, and a scan that pauses continues
//! at its speed.
//!
//! *Locking.* A lock for each row of the table, a leaf, taken only by threads that read from the
//! device next.

use super::pointer::Pointer;
use parking_lot::Mutex;

/// Rows of the table, and states of each: parents share a row by chance.
const ROWS: usize = 16;
const ROW: usize = 8;

/// Nodes read at once after each miss that follows the one before.
const WINDOWS: [u32; 4] = [1, 16, 64, 256];

/// One scan below one parent.
#[derive(Clone, Copy, Debug, Default)]
struct ReadaheadState {
    /// Block and generation of the parent; 0: none yet.
    parent: (u64, u64),
    /// The child behind the last one that was read.
    next: usize,
    /// The index of the last window.
    step: usize,
    /// The time of its last use, in misses of its row.
    used: u64,
}

#[derive(Debug, Default)]
struct Row {
    readahead_states: [ReadaheadState; ROW],
    misses: u64,
}

/// States of the recent scans.
#[derive(Debug, Default)]
pub(super) struct ReadaheadStates([Mutex<Row>; ROWS]);

impl ReadaheadStates {
    /// Child `index` of `parent` is not in memory. Returns how many children to read from it on, at
    /// least 1 and at most `most`.
    pub(super) fn follow(&self, parent: Pointer, index: usize, most: usize) -> usize {
        let place = (parent.block, parent.generation);
        let mixed = (place.0 ^ place.1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut row = self.0[(mixed >> 60) as usize % ROWS].lock();
        row.misses += 1;
        let used = row.misses;
        let follows = |readahead_state: &&mut ReadaheadState| {
            readahead_state.parent == place && readahead_state.next == index
        };
        let at = row.readahead_states.iter_mut().find(follows);
        let goes_on = at.is_some();
        let readahead_state = match at {
            Some(readahead_state) => readahead_state,
            None => oldest(&mut row.readahead_states),
        };
        let step = match goes_on {
            true => (readahead_state.step + 1).min(WINDOWS.len() - 1),
            false => 0,
        };
        let count = (WINDOWS[step] as usize).min(most).max(1);
        *readahead_state = ReadaheadState {
            parent: place,
            next: index + count,
            step,
            used,
        };
        count
    }
}

fn oldest(readahead_states: &mut [ReadaheadState; ROW]) -> &mut ReadaheadState {
    let mut oldest = 0;
    for at in 1..ROW {
        if readahead_states[at].used < readahead_states[oldest].used {
            oldest = at;
        }
    }
    &mut readahead_states[oldest]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(block: u64) -> Pointer {
        Pointer {
            block,
            blocks: 4,
            generation: 1,
        }
    }

    #[test]
    fn reading_ahead_grows_below_each_parent_for_itself_and_between_calls() {
        let readahead_states = ReadaheadStates::default();
        let parents = [parent(8), parent(16)];
        let mut next = [3, 40];
        for expected in [1, 16, 64, 256, 256] {
            for (parent, next) in parents.iter().zip(&mut next) {
                assert_eq!(readahead_states.follow(*parent, *next, 1000), expected);
                *next += expected;
            }
        }
    }

    #[test]
    fn a_miss_elsewhere_reads_one_node_and_spoils_no_scan() {
        let readahead_states = ReadaheadStates::default();
        let parent = parent(8);
        assert_eq!(readahead_states.follow(parent, 0, 1000), 1);
        assert_eq!(readahead_states.follow(parent, 1, 1000), 16);
        for stray in 1..ROW {
            assert_eq!(readahead_states.follow(parent, 100 * stray, 1000), 1);
        }
        assert_eq!(readahead_states.follow(parent, 17, 1000), 64);
        // The child was read before, and evicted.
        assert_eq!(readahead_states.follow(parent, 17, 1000), 1);
    }

    #[test]
    fn a_window_is_no_larger_than_what_may_be_kept() {
        let readahead_states = ReadaheadStates::default();
        let reads: Vec<usize> = [0, 1, 4, 7]
            .map(|index| readahead_states.follow(parent(8), index, 3))
            .into();
        assert_eq!(reads, [1, 3, 3, 3]);
        assert_eq!(readahead_states.follow(parent(8), 10, 0), 1);
    }
}
