//! Reference bits of an inode and its content, for reclaim.
//!
//! A use writes nothing unless reclaim has scanned the inode since the last one: a scan sets the
//! *idle* mark, and the first use in a later *epoch* clears it. Uses in one epoch and the next
//! count as one. So a program that stats, opens and reads a file uses it once, as does one that
//! looks up many names of one directory. While such a burst lasts, the inode is not evicted from
//! probation. An inode that was read ahead is unused until its first use.
//!
//! A new inode is on *probation*, and idle: if it is not used again, the first scan evicts it. If
//! it is, that scan moves it to the *main* set, which is scanned only when probation gets short.
//! The content of a small file has marks of its own: it may be evicted while the inode stays, and
//! comes later than the inode. Reading attributes does not use the content; opening the file does.
//!
//! *Invariants.* Over a store that pins everything all marks stay zero and are never written. Only
//! a scan sets *main*; only the eviction of content clears it. A scan and a concurrent use may lose
//! one of both updates.

use holdfast_cache::Set;
use holdfast_sync::ShardedCounter;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use super::Object;
use crate::inode::bits::READAHEAD;

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

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// In the other set.
    Passed,
    /// Used; moved to the main set.
    Promoted,
    /// Used; stays in the main set.
    Stays,
    /// Loaded or used in this epoch or the last, which is no second use.
    Fresh,
    /// Not used.
    Idle,
}

/// Logical time. An epoch ends when a fraction of the cached objects has been loaded, and after a
/// second in which an object is used.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    now: AtomicU8,
    came: AtomicU64,
    /// The second in which the epoch began.
    began: AtomicU64,
    /// Number of inodes that were read ahead and then used.
    pub(crate) first_uses: ShardedCounter,
}

/// An epoch lasts until 1/`PART` of the cached objects has been loaded: a quarter of a probation
/// set of a tenth.
const PART: u64 = 40;

/// A coarse monotonic clock.
fn seconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    now.tv_sec.max(0).cast_unsigned()
}

impl Epochs {
    fn now(&self) -> u8 {
        self.now.load(Relaxed) << EPOCH_SHIFT
    }

    /// The epoch, for marks that are kept elsewhere.
    pub(crate) fn epoch(&self) -> u8 {
        self.now.load(Relaxed)
    }

    /// Counts `came` loaded objects, where `there` are cached.
    pub(crate) fn pass(&self, came: u64, there: u64) {
        // Relaxed: an estimate. Each caller adds thousands at once.
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

    /// Stops the clock from beginning epochs.
    pub(crate) fn hold(&self) {
        self.began.store(u64::MAX / 2, Relaxed);
    }

    /// Age of these marks in epochs, modulo 16.
    fn since(&self, aging: u8) -> u8 {
        (self.now() >> EPOCH_SHIFT).wrapping_sub(aging >> EPOCH_SHIFT) & EPOCH_MAX
    }

    /// After a second in one epoch, advances by two: a later use is then a second use.
    pub(crate) fn look_at_the_clock(&self) {
        let second = seconds();
        if self.began.load(Relaxed) + 1 < second {
            self.begin(second);
            self.begin(second);
        }
    }
}

impl Object {
    /// Sets the marks of a new inode. `refaulted`: it was evicted too early a while ago, and so
    /// counts as used.
    #[inline]
    pub(crate) fn mark_loaded(&self, epochs: &Epochs, refaulted: bool) {
        let idle = if refaulted { 0 } else { IDLE };
        // Relaxed: the inode is not published yet.
        self.front.aging.store(idle | epochs.now(), Relaxed);
    }

    /// Sets the marks of content that is loaded or written. `refaulted`: as for the inode.
    pub(crate) fn mark_content_loaded(&self, epochs: &Epochs, refaulted: bool) {
        let idle = if refaulted { 0 } else { CONTENT_IDLE };
        let rest = IDLE | MAIN;
        let renewed = |aging| Some(aging & rest | idle | epochs.now());
        let _ = self.front.aging.fetch_update(Relaxed, Relaxed, renewed);
    }

    /// Clears the marks of evicted content.
    pub(crate) fn clear_content_marks(&self) {
        let marks = CONTENT_IDLE | CONTENT_MAIN;
        self.front.aging.fetch_and(!marks, Relaxed);
    }

    /// Marks the inode as used.
    #[inline(always)]
    pub(crate) fn touch(&self, epochs: &Epochs) {
        let aging = self.front.aging.load(Relaxed);
        if aging & (IDLE | CONTENT_IDLE) != 0 {
            self.touch_idle(aging, epochs, IDLE);
        }
    }

    /// Marks the inode and its content as used.
    #[inline]
    pub(crate) fn touch_with_content(&self, epochs: &Epochs) {
        let aging = self.front.aging.load(Relaxed);
        if aging & (IDLE | CONTENT_IDLE) != 0 {
            self.touch_idle(aging, epochs, IDLE | CONTENT_IDLE);
        }
    }

    #[cold]
    fn touch_idle(&self, aging: u8, epochs: &Epochs, used: u8) {
        if self.note_first_use(epochs) {
            match aging & IDLE {
                // `ahead` set the idle mark only so that this path is taken.
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

    /// Is this the first use of an inode that was read ahead? Clears the mark.
    #[inline]
    pub(crate) fn note_first_use(&self, epochs: &Epochs) -> bool {
        let met = self.is_unused_readahead()
            && self.front.marks.fetch_and(!READAHEAD, Relaxed) & READAHEAD != 0;
        if met {
            epochs.first_uses.add(1);
        }
        met
    }

    /// Was it read ahead, and not used since?
    #[inline]
    pub(crate) fn is_unused_readahead(&self) -> bool {
        self.front.marks.load(Relaxed) & READAHEAD != 0
    }

    fn renew(&self, aging: u8, epochs: &Epochs) {
        let marks = aging & !(EPOCH_MAX << EPOCH_SHIFT);
        self.exchange(aging, marks | epochs.now());
    }

    /// Replaces the marks unless they changed meanwhile: reclaim counts the inodes in the main set,
    /// so a mark that it set must not be lost.
    fn exchange(&self, aging: u8, new: u8) -> bool {
        let aging = self
            .front
            .aging
            .compare_exchange(aging, new, Relaxed, Relaxed);
        aging.is_ok()
    }

    /// Marks an inode as read ahead. Called before the inode is published.
    pub(crate) fn mark_readahead(&self) {
        let marks = self.front.marks.load(Relaxed);
        self.front.marks.store(marks | READAHEAD, Relaxed);
        let aging = self.front.aging.load(Relaxed);
        if aging & (IDLE | CONTENT_IDLE) == 0 {
            // It was evicted too early and is not idle. An idle mark for content, which there is
            // none of yet, makes its first use take the slow path.
            self.front.aging.store(aging | CONTENT_IDLE, Relaxed);
        }
    }

    /// Scans the inode or its content: was it used since it was loaded, or since the last scan?
    pub(crate) fn scan(&self, part: Part, set: Set, epochs: &Epochs) -> Scanned {
        let aging = self.front.aging.load(Relaxed);
        let (idle, main) = (part.idle(), part.main());
        let is_main = aging & main != 0;
        if is_main != (set == Set::Main) {
            return Scanned::Passed;
        }
        if aging & idle != 0 {
            let is_fresh = set == Set::Probation && epochs.since(aging) < 2;
            return if is_fresh {
                Scanned::Fresh
            } else {
                Scanned::Idle
            };
        }
        let marks = aging & !(EPOCH_MAX << EPOCH_SHIFT);
        if !self.exchange(aging, marks | idle | main | epochs.now()) {
            return Scanned::Fresh;
        }
        match is_main {
            true => Scanned::Stays,
            false => Scanned::Promoted,
        }
    }

    /// Is the inode in the main set?
    #[inline]
    pub(crate) fn is_main(&self) -> bool {
        self.front.aging.load(Relaxed) & MAIN != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inode::{ContentState, Meta};
    use crate::types::{FileType, Time};

    fn object(epochs: &Epochs) -> Object {
        let meta = Meta::new(0o644, 0, 0, Time(0));
        let object = Object::new(1, FileType::Regular, &meta, None, ContentState::All);
        object.mark_loaded(epochs, false);
        object.mark_content_loaded(epochs, false);
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
            assert_eq!(
                once.scan(Part::Inode, Set::Probation, &epochs),
                Scanned::Fresh
            );
            once.touch_with_content(&epochs);
        }
        pass(&epochs, 2);
        for part in [Part::Inode, Part::Content] {
            assert_eq!(once.scan(part, Set::Main, &epochs), Scanned::Passed);
            assert_eq!(once.scan(part, Set::Probation, &epochs), Scanned::Idle);
        }
    }

    #[test]
    fn what_is_used_again_survives_a_scan_of_each_part() {
        let epochs = Epochs::default();
        let used = object(&epochs);
        pass(&epochs, 2);
        used.touch_with_content(&epochs);
        for part in [Part::Inode, Part::Content] {
            assert_eq!(used.scan(part, Set::Probation, &epochs), Scanned::Promoted);
            assert_eq!(used.scan(part, Set::Probation, &epochs), Scanned::Passed);
            assert_eq!(used.scan(part, Set::Main, &epochs), Scanned::Idle);
        }
        pass(&epochs, 2);
        used.touch(&epochs);
        assert_eq!(used.scan(Part::Inode, Set::Main, &epochs), Scanned::Stays);
        assert!(used.is_main());
    }

    #[test]
    fn who_asks_for_attributes_uses_no_content_and_content_that_went_begins_anew() {
        let epochs = Epochs::default();
        let object = object(&epochs);
        let content = |set| object.scan(Part::Content, set, &epochs);
        pass(&epochs, 3);
        object.touch(&epochs);
        assert_eq!(content(Set::Probation), Scanned::Idle);
        let looked = object.scan(Part::Inode, Set::Probation, &epochs);
        assert_eq!(looked, Scanned::Promoted);
        pass(&epochs, 3);
        object.touch_with_content(&epochs);
        assert_eq!(content(Set::Probation), Scanned::Promoted);
        object.clear_content_marks();
        object.mark_content_loaded(&epochs, false);
        // A burst of uses directly after the load counts as the use that loaded it.
        object.touch_with_content(&epochs);
        assert_eq!(content(Set::Main), Scanned::Passed);
        assert_eq!(content(Set::Probation), Scanned::Fresh);
        pass(&epochs, 2);
        assert_eq!(content(Set::Probation), Scanned::Idle);
        object.clear_content_marks();
        object.mark_content_loaded(&epochs, true);
        assert_eq!(content(Set::Probation), Scanned::Promoted);
        assert!(object.is_main(), "the inode stayed where it was");
    }

    #[test]
    fn what_was_read_ahead_is_used_first_when_somebody_asks_for_it() {
        let epochs = Epochs::default();
        let it = object(&epochs);
        it.mark_readahead();
        pass(&epochs, 5);
        it.touch(&epochs);
        pass(&epochs, 2);
        assert_eq!(it.scan(Part::Inode, Set::Probation, &epochs), Scanned::Idle);
        it.touch(&epochs);
        assert_eq!(
            it.scan(Part::Inode, Set::Probation, &epochs),
            Scanned::Promoted
        );
    }

    #[test]
    fn the_first_use_of_what_was_read_ahead_is_told_once_also_where_it_went_too_early() {
        let epochs = Epochs::default();
        epochs.hold();
        for refaulted in [false, true] {
            let before = epochs.first_uses.sum();
            let it = object(&epochs);
            it.mark_loaded(&epochs, refaulted);
            it.mark_readahead();
            assert!(it.is_unused_readahead());
            (0..3).for_each(|_| it.touch(&epochs));
            assert!(!it.is_unused_readahead() && !it.note_first_use(&epochs));
            assert_eq!(
                epochs.first_uses.sum() - before,
                1,
                "refaulted: {refaulted}"
            );
            let expected = if refaulted {
                Scanned::Promoted
            } else {
                Scanned::Fresh
            };
            assert_eq!(it.scan(Part::Inode, Set::Probation, &epochs), expected);
        }
    }

    #[test]
    fn what_came_again_soon_is_in_the_main_set_from_the_first_look_on() {
        let epochs = Epochs::default();
        let object = object(&epochs);
        object.mark_loaded(&epochs, true);
        assert_eq!(
            object.scan(Part::Inode, Set::Probation, &epochs),
            Scanned::Promoted
        );
        assert!(object.is_main());
    }
}
