//! The marks of a leaf: when frames arrive, are used and are scanned.

use super::{Arrival, Set};
use crate::frame::node::Node;
use std::sync::atomic::Ordering::Relaxed;

impl<X> Node<X> {
    /// Is a use of the frame at `place` to be noted?
    #[inline(always)]
    pub(crate) fn is_idle(&self, place: usize) -> bool {
        self.aging.idle.load(Relaxed) >> place & 1 != 0
    }

    /// A frame arrives in a slot that was empty.
    pub(crate) fn came(&self, place: usize, arrival: Option<(u8, Arrival)>) {
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
    pub(super) fn touch(&self, bits: u64, epoch: u8) -> bool {
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
    pub(super) fn look(&self, bits: u64, set: Set, epoch: u8) -> u64 {
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

    /// Notes that a frame was put into this slot of a leaf, which was empty or not.
    pub(crate) fn put_there(&self, place: usize, was_empty: bool, arrival: Option<(u8, Arrival)>) {
        match (was_empty, arrival) {
            (true, arrival) => self.came(place, arrival),
            (false, Some((epoch, _))) => _ = self.touch(1 << place, epoch),
            (false, None) => {}
        }
    }
}
