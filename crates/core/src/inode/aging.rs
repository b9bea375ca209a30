//! How often an inode and its content are used, as far as reclaim has to know.
//!
//! A use writes nothing, unless reclaim has looked since: the mark says *idle*, is set by reclaim, and is cleared by the first
//! use in a later *epoch*. Uses in an epoch and the next are one use, however long they go on: a program that stats, opens and reads a
//! file has seen it once, and so has one that looks for one name of a directory after the other. While that goes on nothing is taken from probation.
//! What was read ahead is not used yet: its first use is the first.
//!
//! What comes is on *probation*, and idle: what is not used again goes at the first look. What is used again becomes part of the *main* set at
//! that look, where looks come only as the rest gets short. The content of a small file has marks of its own: it may go while the inode stays, and
//! comes later than that. To ask for attributes is no use of it; to open the file is.
//!
//! *Invariants.* Over a store that pins everything all marks are zero, so that nothing is ever written. *Main* is set by a look
//! alone, and never cleared, but for content that goes. A look and a use that meet may lose either, no more.

use holdfast_cache::Set;
use holdfast_sync::ShardedCounter;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use super::Object;
use super::marks::AHEAD;

const IDLE: u8 = 1;
const MAIN: u8 = 1 << 1;
const CONTENT_IDLE: u8 = 1 << 2;
const CONTENT_MAIN: u8 = 1 << 3;
const EPOCH_SHIFT: u32 = 4;
const EPOCH_MAX: u8 = u8::MAX >> EPOCH_SHIFT;

/// The inode, or the content of a small file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Inode,
    Content,
}

impl Part {
    fn idle(self) -> u8 {
        match self {
            Self::Inode => IDLE,
            Self::Content => CONTENT_IDLE,
        }
    }

    fn main(self) -> u8 {
        match self {
            Self::Inode => MAIN,
            Self::Content => CONTENT_MAIN,
        }
    }
}

/// What comes of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It is in the other set.
    Passed,
    /// It was used, and is in the main set from now on.
    Promoted,
    /// It was used, and stays there.
    Stays,
    /// It came, or was used, just now: that is no second use.
    Fresh,
    /// It was not used.
    Idle,
}

/// Logical time: it goes on when as much has come as a part of what there is, and after a second in which something is used.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    now: AtomicU8,
    came: AtomicU64,
    /// The second in which the epoch began.
    began: AtomicU64,
    /// How often something was used that had been read ahead, for the first time.
    pub(crate) met: ShardedCounter,
}

/// An epoch is as long as it takes until one in so many objects has come: a quarter of what is on probation, where that is a tenth.
const PART: u64 = 40;

/// By a clock that costs little.
fn seconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    now.tv_sec.max(0).cast_unsigned()
}

impl Epochs {
    fn now(&self) -> u8 {
        self.now.load(Relaxed) << EPOCH_SHIFT
    }

    /// For marks that are kept elsewhere.
    pub(crate) fn epoch(&self) -> u8 {
        self.now.load(Relaxed)
    }

    /// So many objects have come, of so many that there are.
    pub(crate) fn pass(&self, came: u64, there: u64) {
        // Relaxed: guesses. Those that meet here have each added thousands.
        let came = self.came.fetch_add(came, Relaxed) + came;
        if came > there / PART {
            self.came.store(0, Relaxed);
            self.begin(seconds());
        }
    }

    fn begin(&self, second: u64) {
        self.began.store(second, Relaxed);
        self.now
            .store(self.now.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// No epoch begins by the clock any more.
    pub(crate) fn hold(&self) {
        self.began.store(u64::MAX / 2, Relaxed);
    }

    /// How many epochs ago are these marks from? Sixteen are as none.
    fn since(&self, aging: u8) -> u8 {
        (self.now() >> EPOCH_SHIFT).wrapping_sub(aging >> EPOCH_SHIFT) & EPOCH_MAX
    }

    /// Goes on if the epoch has lasted a second: twice, for what is used after that is used again.
    pub(crate) fn look_at_the_clock(&self) {
        let second = seconds();
        if self.began.load(Relaxed) + 1 < second {
            self.begin(second);
            self.begin(second);
        }
    }
}

impl Object {
    /// It comes now. `again`: it went a while ago, and that was too early; so it counts as used.
    #[inline]
    pub(crate) fn arrive(&self, epochs: &Epochs, again: bool) {
        let idle = if again { 0 } else { IDLE };
        // Nobody else knows of it yet.
        self.front.aging.store(idle | epochs.now(), Relaxed);
    }

    /// The content of a small file comes now, by itself or with what is written. `again`: as for the inode.
    pub(crate) fn content_comes(&self, epochs: &Epochs, again: bool) {
        let idle = if again { 0 } else { CONTENT_IDLE };
        let rest = IDLE | MAIN;
        let renewed = |aging| Some(aging & rest | idle | epochs.now());
        let _ = self.front.aging.fetch_update(Relaxed, Relaxed, renewed);
    }

    /// It went, and has to prove itself again.
    pub(crate) fn content_went(&self) {
        let marks = CONTENT_IDLE | CONTENT_MAIN;
        self.front.aging.fetch_and(!marks, Relaxed);
    }

    /// It is used.
    #[inline(always)]
    pub(crate) fn touch(&self, epochs: &Epochs) {
        let aging = self.front.aging.load(Relaxed);
        if aging & (IDLE | CONTENT_IDLE) != 0 {
            self.touch_idle(aging, epochs, IDLE);
        }
    }

    /// It is used, and so is its content.
    #[inline]
    pub(crate) fn touch_with_content(&self, epochs: &Epochs) {
        let aging = self.front.aging.load(Relaxed);
        if aging & (IDLE | CONTENT_IDLE) != 0 {
            self.touch_idle(aging, epochs, IDLE | CONTENT_IDLE);
        }
    }

    #[cold]
    fn touch_idle(&self, aging: u8, epochs: &Epochs, used: u8) {
        if self.meet(epochs) {
            match aging & IDLE {
                // That it is idle was said for this.
                0 => _ = self.exchange(aging, aging & !CONTENT_IDLE),
                _ => self.renew(aging, epochs),
            }
            return;
        }
        if aging & used == 0 {
            return;
        }
        if epochs.since(aging) == 0 {
            epochs.look_at_the_clock();
        }
        match epochs.since(aging) {
            0 => {}
            1 => self.renew(aging, epochs),
            _ => {
                self.front.aging.fetch_and(!used, Relaxed);
            }
        }
    }

    /// Was it read ahead, and is this the first use of it? It is no longer unmet then.
    #[inline]
    pub(crate) fn meet(&self, epochs: &Epochs) -> bool {
        let met = self.is_unmet() && self.front.marks.fetch_and(!AHEAD, Relaxed) & AHEAD != 0;
        if met {
            epochs.met.add(1);
        }
        met
    }

    /// Was it read ahead, and has nobody used it yet?
    #[inline]
    pub(crate) fn is_unmet(&self) -> bool {
        self.front.marks.load(Relaxed) & AHEAD != 0
    }

    fn renew(&self, aging: u8, epochs: &Epochs) {
        let marks = aging & !(EPOCH_MAX << EPOCH_SHIFT);
        self.exchange(aging, marks | epochs.now());
    }

    /// Changes the marks, unless somebody else does: reclaim counts those in the main set, so none may be lost that it set.
    fn exchange(&self, aging: u8, new: u8) -> bool {
        let aging = self
            .front
            .aging
            .compare_exchange(aging, new, Relaxed, Relaxed);
        aging.is_ok()
    }

    /// Nobody has asked for it: it comes with others. To be said before anybody can find it.
    pub(crate) fn ahead(&self) {
        let marks = self.front.marks.load(Relaxed);
        self.front.marks.store(marks | AHEAD, Relaxed);
        let aging = self.front.aging.load(Relaxed);
        if aging & (IDLE | CONTENT_IDLE) == 0 {
            // It went too early. Its first use looks at the marks all the same; it has no content yet.
            self.front.aging.store(aging | CONTENT_IDLE, Relaxed);
        }
    }

    /// Reclaim looks whether this was used since it came, or since the last look.
    pub(crate) fn look(&self, part: Part, set: Set, epochs: &Epochs) -> Look {
        let aging = self.front.aging.load(Relaxed);
        let (idle, main) = (part.idle(), part.main());
        let is_main = aging & main != 0;
        if is_main != (set == Set::Main) {
            return Look::Passed;
        }
        if aging & idle != 0 {
            let is_fresh = set == Set::Probation && epochs.since(aging) < 2;
            return if is_fresh { Look::Fresh } else { Look::Idle };
        }
        let marks = aging & !(EPOCH_MAX << EPOCH_SHIFT);
        if !self.exchange(aging, marks | idle | main | epochs.now()) {
            return Look::Fresh;
        }
        match is_main {
            true => Look::Stays,
            false => Look::Promoted,
        }
    }

    /// Is it in the main set?
    #[inline]
    pub(crate) fn is_main(&self) -> bool {
        self.front.aging.load(Relaxed) & MAIN != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inode::{Known, Meta};
    use crate::types::{FileType, Time};

    fn object(epochs: &Epochs) -> Object {
        let meta = Meta::new(0o644, 0, 0, Time(0));
        let object = Object::new(1, FileType::Regular, &meta, None, Known::All);
        object.arrive(epochs, false);
        object.content_comes(epochs, false);
        object
    }

    fn pass(epochs: &Epochs, count: u8) {
        (0..count).for_each(|_| epochs.begin(seconds()));
    }

    #[test]
    fn what_is_never_used_again_goes_at_its_first_scan_and_a_burst_is_one_use() {
        let epochs = Epochs::default();
        pass(&epochs, 14);
        let once = object(&epochs);
        for _ in 0..6 {
            once.touch_with_content(&epochs);
            pass(&epochs, 1);
            assert_eq!(once.look(Part::Inode, Set::Probation, &epochs), Look::Fresh);
            once.touch_with_content(&epochs);
        }
        pass(&epochs, 2);
        for part in [Part::Inode, Part::Content] {
            assert_eq!(once.look(part, Set::Main, &epochs), Look::Passed);
            assert_eq!(once.look(part, Set::Probation, &epochs), Look::Idle);
        }
    }

    #[test]
    fn what_is_used_again_survives_a_scan_of_each_part() {
        let epochs = Epochs::default();
        let again = object(&epochs);
        pass(&epochs, 2);
        again.touch_with_content(&epochs);
        for part in [Part::Inode, Part::Content] {
            assert_eq!(again.look(part, Set::Probation, &epochs), Look::Promoted);
            assert_eq!(again.look(part, Set::Probation, &epochs), Look::Passed);
            assert_eq!(again.look(part, Set::Main, &epochs), Look::Idle);
        }
        pass(&epochs, 2);
        again.touch(&epochs);
        assert_eq!(again.look(Part::Inode, Set::Main, &epochs), Look::Stays);
        assert!(again.is_main());
    }

    #[test]
    fn who_asks_for_attributes_uses_no_content_and_content_that_went_begins_anew() {
        let epochs = Epochs::default();
        let object = object(&epochs);
        let content = |set| object.look(Part::Content, set, &epochs);
        pass(&epochs, 3);
        object.touch(&epochs);
        assert_eq!(content(Set::Probation), Look::Idle);
        let looked = object.look(Part::Inode, Set::Probation, &epochs);
        assert_eq!(looked, Look::Promoted);
        pass(&epochs, 3);
        object.touch_with_content(&epochs);
        assert_eq!(content(Set::Probation), Look::Promoted);
        object.content_went();
        object.content_comes(&epochs, false);
        // A burst of uses after it came is the one that it came for.
        object.touch_with_content(&epochs);
        assert_eq!(content(Set::Main), Look::Passed);
        assert_eq!(content(Set::Probation), Look::Fresh);
        pass(&epochs, 2);
        assert_eq!(content(Set::Probation), Look::Idle);
        object.content_went();
        object.content_comes(&epochs, true);
        assert_eq!(content(Set::Probation), Look::Promoted);
        assert!(object.is_main(), "the inode stayed where it was");
    }

    #[test]
    fn what_was_read_ahead_is_used_first_when_somebody_asks_for_it() {
        let epochs = Epochs::default();
        let ahead = object(&epochs);
        ahead.ahead();
        pass(&epochs, 5);
        ahead.touch(&epochs);
        pass(&epochs, 2);
        assert_eq!(ahead.look(Part::Inode, Set::Probation, &epochs), Look::Idle);
        ahead.touch(&epochs);
        assert_eq!(
            ahead.look(Part::Inode, Set::Probation, &epochs),
            Look::Promoted
        );
    }

    #[test]
    fn the_first_use_of_what_was_read_ahead_is_told_once_also_where_it_went_too_early() {
        let epochs = Epochs::default();
        epochs.hold();
        for again in [false, true] {
            let before = epochs.met.sum();
            let ahead = object(&epochs);
            ahead.arrive(&epochs, again);
            ahead.ahead();
            assert!(ahead.is_unmet());
            (0..3).for_each(|_| ahead.touch(&epochs));
            assert!(!ahead.is_unmet() && !ahead.meet(&epochs));
            assert_eq!(epochs.met.sum() - before, 1, "again: {again}");
            let expected = if again { Look::Promoted } else { Look::Fresh };
            assert_eq!(ahead.look(Part::Inode, Set::Probation, &epochs), expected);
        }
    }

    #[test]
    fn what_came_again_soon_is_in_the_main_set_from_the_first_look_on() {
        let epochs = Epochs::default();
        let object = object(&epochs);
        object.arrive(&epochs, true);
        assert_eq!(
            object.look(Part::Inode, Set::Probation, &epochs),
            Look::Promoted
        );
        assert!(object.is_main());
    }
}
