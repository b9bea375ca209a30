//! Which frames of a leaf are used again, for an owner that forgets some.
//!
//! The marks are bits, as for inodes. A frame arrives *idle*, and its first use in a later epoch
//! clears that bit. A scan by the owner takes the idle frames. It moves the others to the *main*
//! set and sets their idle bits. A frame is *fresh* in the epoch in which it arrived and in the
//! next: uses in that time are the ones that it was brought for. A frame brought *ahead* of its use
//! is first used later. So a use writes nothing, unless there was a scan since the last one.
//!
//! A leaf is *marked* from the first frame on that arrives with a [stamp](FramesLock::set_arrival).
//! Without that all its marks are zero, a use reads one word of them, and a scan takes every frame.
//! A frame that is the root has no leaf, and no marks.
//!
//! *Invariants.* All marks are guesses: concurrent updates may be lost, and nothing else depends on
//! them. What a use reads lies on a line of the leaf that it needs anyway. Only scans, first uses,
//! and first arrivals after others write to that line.

use super::lock::FramesLock;
use super::map::Frames;
use super::node::{FAN, Node};
use crate::epoch::Guard;
use crate::frame_primitive::Mark;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// As many epochs, from that of the arrival on, count as one use.
const BURST: u8 = 2;

/// The marks of a leaf, in its first line.
pub(super) struct Aging {
    /// Frames of which the next use is to be noted. The bit of an empty slot may have any value.
    idle: Mark,
    /// Frames that were brought ahead of their use, and not used yet.
    prefetched: Mark,
    /// The epoch in which the fresh frames arrived, plus one; 0 if the leaf is not marked.
    fresh_epoch: Mark,
}

/// The marks of a leaf in a line that its writers write.
pub(super) struct Sets {
    main: Mark,
    /// Frames that arrived, or were first used, in `fresh_epoch`.
    fresh: Mark,
}

/// Why frames arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// They are used now.
    Used,
    /// They may be used soon.
    Prefetched,
}

/// The set that a scan takes frames from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Frames that were not used again, as far as earlier scans know.
    Probation,
    /// Frames that were used again.
    Main,
}

impl Aging {
    pub(super) const fn unmarked() -> Self {
        Self {
            idle: Mark::new(0),
            prefetched: Mark::new(0),
            fresh_epoch: Mark::new(0),
        }
    }

    fn is_marked(&self) -> bool {
        self.fresh_epoch.load(Relaxed) != 0
    }

    fn set_epoch(&self, epoch: u8) {
        self.fresh_epoch.store(u64::from(epoch) + 1, Relaxed);
    }

    /// Are the frames in `fresh` still fresh in this epoch?
    fn is_recent(&self, epoch: u8) -> bool {
        let fresh = self.fresh_epoch.load(Relaxed);
        fresh != 0 && epoch.wrapping_sub((fresh - 1) as u8) < BURST
    }
}

impl Sets {
    pub(super) const fn none() -> Self {
        Self {
            main: Mark::new(0),
            fresh: Mark::new(0),
        }
    }
}

impl<X> Node<X> {
    /// Is a use of the frame at `place` to be noted?
    #[inline(always)]
    pub(super) fn is_idle(&self, place: usize) -> bool {
        self.aging.idle.load(Relaxed) >> place & 1 != 0
    }

    /// A frame arrives in a slot that was empty.
    pub(super) fn came(&self, place: usize, arrival: Option<(u8, Arrival)>) {
        let Some((epoch, arrival)) = arrival else {
            return self.came_unseen(1 << place);
        };
        let (aging, sets, bit) = (&self.aging, &self.sets, 1 << place);
        if !aging.is_marked() {
            aging.idle.store(u64::MAX, Relaxed);
        }
        if aging.fresh_epoch.load(Relaxed) != u64::from(epoch) + 1 {
            aging.set_epoch(epoch);
            sets.fresh.store(0, Relaxed);
        }
        sets.fresh.store(sets.fresh.load(Relaxed) | bit, Relaxed);
        self.begins(bit, arrival);
    }

    /// It arrives without a stamp: it may be taken at once, and its first use counts.
    fn came_unseen(&self, bit: u64) {
        if self.aging.is_marked() {
            self.begins(bit, Arrival::Used);
            let fresh = &self.sets.fresh;
            fresh.store(fresh.load(Relaxed) & !bit, Relaxed);
        }
    }

    fn begins(&self, bit: u64, arrival: Arrival) {
        let (aging, main) = (&self.aging, &self.sets.main);
        main.store(main.load(Relaxed) & !bit, Relaxed);
        if aging.idle.load(Relaxed) & bit == 0 {
            aging.idle.fetch_or(bit, Relaxed);
        }
        match arrival {
            Arrival::Prefetched => _ = aging.prefetched.fetch_or(bit, Relaxed),
            Arrival::Used if aging.prefetched.load(Relaxed) & bit == 0 => {}
            Arrival::Used => _ = aging.prefetched.fetch_and(!bit, Relaxed),
        }
    }

    /// Notes uses of the frames with these bits. Returns whether one is fresh, so that its use does
    /// not count.
    #[inline]
    fn touch(&self, bits: u64, epoch: u8) -> bool {
        let idle = self.aging.idle.load(Relaxed) & bits;
        idle != 0 && self.touch_idle(idle, epoch)
    }

    #[cold]
    fn touch_idle(&self, idle: u64, epoch: u8) -> bool {
        let (aging, sets) = (&self.aging, &self.sets);
        let idle = idle & self.used_about();
        let first = idle & aging.prefetched.load(Relaxed);
        if first != 0 {
            aging.prefetched.fetch_and(!first, Relaxed);
            if !aging.is_recent(epoch) {
                aging.set_epoch(epoch);
                sets.fresh.store(0, Relaxed);
            }
            sets.fresh.fetch_or(first, Relaxed);
        }
        let fresh = match aging.is_recent(epoch) {
            true => idle & sets.fresh.load(Relaxed),
            false => 0,
        };
        if idle != fresh {
            aging.idle.fetch_and(!(idle & !fresh), Relaxed);
        }
        fresh != 0
    }

    /// Scans the frames with these bits. Returns those that may be taken.
    fn look(&self, bits: u64, set: Set, epoch: u8) -> u64 {
        let there = self.used() & bits;
        let (aging, sets) = (&self.aging, &self.sets);
        if !aging.is_marked() {
            return if set == Set::Main { 0 } else { there };
        }
        let (idle, main) = (aging.idle.load(Relaxed), sets.main.load(Relaxed));
        let looked = match set {
            Set::Probation => there & !main,
            Set::Main => there & main,
        };
        let reused = looked & !idle;
        if reused != 0 {
            sets.main.store(main | reused, Relaxed);
            aging.idle.fetch_or(reused, Relaxed);
        }
        let fresh = match set == Set::Probation && aging.is_recent(epoch) {
            true => sets.fresh.load(Relaxed),
            false => 0,
        };
        looked & idle & !fresh
    }
}

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

    /// Notes that a frame was put into this slot of a leaf, which was empty or not.
    pub(super) fn put_there(&self, leaf: &Node<X>, place: usize, was_empty: bool) {
        match (was_empty, self.arrival) {
            (true, arrival) => leaf.came(place, arrival),
            (false, Some((epoch, _))) => _ = leaf.touch(1 << place, epoch),
            (false, None) => {}
        }
    }
}
