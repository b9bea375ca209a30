//! Uses and scans of frames by their numbers.

use super::{Arrival, Set};
use crate::epoch::Guard;
use crate::frame::lock::FramesLock;
use crate::frame::map::Frames;
use crate::frame::node::FAN;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

impl<X: Send + 'static> Frames<X> {
    /// Notes uses of frames in this epoch. Returns whether one of them is fresh, so that its use
    /// does not count.
    pub fn touch(&self, numbers: Range<u64>, epoch: u8, guard: &Guard) -> bool {
        let mut fresh = false;
        let mut at = numbers.start;
        while at < numbers.end {
            let found = self.root.find(guard).leaf(at, guard);
            if let Some(leaf) = found.filter(|leaf| leaf.spans(at)) {
                fresh |= leaf.touch(leaf.mask_of(&numbers), epoch);
            }
            at = (at | (FAN - 1)) + 1;
        }
        fresh
    }
}

impl<X: Send + 'static> FramesLock<'_, X> {
    /// Sets the epoch and kind of frames that arrive under this lock from now on; a frame that is
    /// replaced is used.
    pub fn set_arrival(&mut self, epoch: u8, arrival: Arrival) {
        self.arrival = Some((epoch, arrival));
    }

    /// Notes that a frame that just arrived had been taken too early: it counts as used again.
    pub fn mark_used(&mut self, number: u64) {
        if let Some(leaf) = self.leaf_there(number) {
            let bit = 1_u64 << leaf.place(number);
            leaf.aging.idle.fetch_and(!bit, Relaxed);
            leaf.aging.prefetched.fetch_and(!bit, Relaxed);
        }
    }

    /// Scans these frames, which belong to one group of 64. Returns a bit for each that was not
    /// used since the last scan and is to be taken, counted from the first number of the group.
    /// Without marks all are to be taken.
    pub fn look(&mut self, numbers: Range<u64>, set: Set, epoch: u8) -> u64 {
        match self.leaf_there(numbers.start) {
            Some(leaf) => leaf.look(leaf.mask_of(&numbers), set, epoch),
            None => u64::from(self.is_small() && set == Set::Probation && numbers.start == 0),
        }
    }
}
