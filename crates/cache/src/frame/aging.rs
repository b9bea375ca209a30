//! Which frames of a leaf are used again, as far as an owner that forgets some has to know.
//!
//! As for inodes, in bits: a frame comes *idle*, and its first use in a later epoch clears that; a look of the owner, for
//! room, takes what is idle and sets the bit of what is not, which is in the *main* set from then on. Uses in the epoch in
//! which a frame came, or the next, are those that it came for: it is *fresh* until then. What came *ahead* of its use is
//! used for the first time later. So a use writes nothing, unless there was a look since.
//!
//! A leaf is *marked* from the first frame on that came at a [stamp](FramesLock::stamp); in one that is not, all marks are
//! zero, uses look at one word of them, and a look takes all there is. A frame that is alone has no leaf, and no marks.
//!
//! *Invariants.* All this is a guess: marks that meet may be lost, and nothing else hangs on them. What every use looks
//! at is on the line of a leaf that it needs anyway, and only looks, first uses, and frames that come for the first time after others
//! write there.

use super::lock::FramesLock;
use super::map::Frames;
use super::node::{FAN, Node};
use crate::epoch::Guard;
use crate::frame_primitive::Mark;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// Epochs, from the one in which a frame came, in which its uses are one.
const BURST: u8 = 2;

/// Of a leaf, in its first line.
pub(super) struct Aging {
    /// Those of which the next use is to be told; of what is not there it may be either.
    idle: Mark,
    /// Those that came ahead of their use, and were not used yet.
    ahead: Mark,
    /// The epoch in which the fresh ones came, and one; 0: it is not marked.
    stamp: Mark,
}

/// Of a leaf, where its writers write.
pub(super) struct Sets {
    main: Mark,
    /// Those that came, or were first used, in the epoch of the stamp.
    fresh: Mark,
}

/// What is known of frames that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// They are used now.
    Used,
    /// They may be used soon.
    Ahead,
}

/// Which ones a look is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Those that were not used again, as far as earlier looks know.
    Probation,
    /// Those that were.
    Main,
}

impl Aging {
    pub(super) const fn unmarked() -> Self {
        Self {
            idle: Mark::new(0),
            ahead: Mark::new(0),
            stamp: Mark::new(0),
        }
    }

    fn is_marked(&self) -> bool {
        self.stamp.load(Relaxed) != 0
    }

    fn set_epoch(&self, epoch: u8) {
        self.stamp.store(u64::from(epoch) + 1, Relaxed);
    }

    /// Did the fresh ones come so lately that they are?
    fn is_recent(&self, epoch: u8) -> bool {
        let stamp = self.stamp.load(Relaxed);
        stamp != 0 && epoch.wrapping_sub((stamp - 1) as u8) < BURST
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
    /// Is a use of the frame at `place` to be told?
    #[inline(always)]
    pub(super) fn is_idle(&self, place: usize) -> bool {
        self.aging.idle.load(Relaxed) >> place & 1 != 0
    }

    /// A frame comes to a slot that held none.
    pub(super) fn came(&self, place: usize, stamp: Option<(u8, Arrival)>) {
        let Some((epoch, arrival)) = stamp else {
            return self.came_unseen(1 << place);
        };
        let (aging, sets, bit) = (&self.aging, &self.sets, 1 << place);
        if !aging.is_marked() {
            aging.idle.store(u64::MAX, Relaxed);
        }
        if aging.stamp.load(Relaxed) != u64::from(epoch) + 1 {
            aging.set_epoch(epoch);
            sets.fresh.store(0, Relaxed);
        }
        sets.fresh.store(sets.fresh.load(Relaxed) | bit, Relaxed);
        self.begins(bit, arrival);
    }

    /// It comes with nothing known of it: to be had at once, and used at its first use.
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
            Arrival::Ahead => _ = aging.ahead.fetch_or(bit, Relaxed),
            Arrival::Used if aging.ahead.load(Relaxed) & bit == 0 => {}
            Arrival::Used => _ = aging.ahead.fetch_and(!bit, Relaxed),
        }
    }

    /// The frames of these bits are used. Says whether one is fresh, so that this did not count.
    #[inline]
    fn touch(&self, bits: u64, epoch: u8) -> bool {
        let idle = self.aging.idle.load(Relaxed) & bits;
        idle != 0 && self.touch_idle(idle, epoch)
    }

    #[cold]
    fn touch_idle(&self, idle: u64, epoch: u8) -> bool {
        let (aging, sets) = (&self.aging, &self.sets);
        let idle = idle & self.used_about();
        let first = idle & aging.ahead.load(Relaxed);
        if first != 0 {
            aging.ahead.fetch_and(!first, Relaxed);
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

    /// The owner looks at the frames of these bits, and learns which ones may go.
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
        let again = looked & !idle;
        if again != 0 {
            sets.main.store(main | again, Relaxed);
            aging.idle.fetch_or(again, Relaxed);
        }
        let fresh = match set == Set::Probation && aging.is_recent(epoch) {
            true => sets.fresh.load(Relaxed),
            false => 0,
        };
        looked & idle & !fresh
    }
}

impl<X: Send + 'static> Frames<X> {
    /// Says that frames are used, in this epoch. Returns whether one of them is fresh, so that this does not count.
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
    /// Frames that come from now on, under this lock, come in this epoch; those that are replaced are used.
    pub fn stamp(&mut self, epoch: u8, arrival: Arrival) {
        self.stamp = Some((epoch, arrival));
    }

    /// Says that a frame that came just now had gone too early: it counts as used again.
    pub fn came_again(&mut self, number: u64) {
        if let Some(leaf) = self.leaf_there(number) {
            let bit = 1_u64 << leaf.place(number);
            leaf.aging.idle.fetch_and(!bit, Relaxed);
            leaf.aging.ahead.fetch_and(!bit, Relaxed);
        }
    }

    /// Looks which of these frames, of one group of 64, were used since the last look; returns a bit for each that was not, and is
    /// to go, counted from the first number of the group. Where there are no marks all are to go.
    pub fn look(&mut self, numbers: Range<u64>, set: Set, epoch: u8) -> u64 {
        match self.leaf_there(numbers.start) {
            Some(leaf) => leaf.look(leaf.mask_of(&numbers), set, epoch),
            None => u64::from(self.is_small() && set == Set::Probation && numbers.start == 0),
        }
    }

    /// A frame was put into this place of a leaf, where there was one, or none.
    pub(super) fn put_there(&self, leaf: &Node<X>, place: usize, was_empty: bool) {
        match (was_empty, self.stamp) {
            (true, stamp) => leaf.came(place, stamp),
            (false, Some((epoch, _))) => _ = leaf.touch(1 << place, epoch),
            (false, None) => {}
        }
    }
}
