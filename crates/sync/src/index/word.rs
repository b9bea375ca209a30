//! State, uses and raw uses of an object in one word, and what each step makes of it.
//!
//! Pure arithmetic: [`held`](super::held) and its neighbours put it into compare-exchange loops.
//!
//! ```text
//! bit 63       62      61     60      59..28     27..0
//! detached  shared  dying  doomed   raw uses    uses
//! ```
//!
//! *Invariants.*
//! - Dying: no use of either kind, and none comes. The low bits then say who waits (`AWAITED`), and
//!   that the object has left its index (`BURIED`), which is for ever.
//! - Counts that reach their maximum stay there: the object is never freed, however many uses
//!   were leaked.

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

const RAW_SHIFT: u32 = 28;
const RAW_MAX: u64 = u32::MAX as u64;
const USES_MAX: u64 = (1 << RAW_SHIFT) - 1;
const USE: u64 = 1;
const RAW_USE: u64 = 1 << RAW_SHIFT;

/// The last use to go ends the object.
const DOOMED: u64 = 1 << 60;
/// Ended, and in the hands of one `Doomed`.
const DYING: u64 = 1 << 61;
/// The index is gone: whoever ends the object frees it.
const DETACHED: u64 = 1 << 63;

/// While dying: somebody sleeps until that is over.
const AWAITED: u64 = 1;
/// While dying: out of the index.
pub(super) const BURIED: u64 = 2;

impl Word {
    /// Live, with one use.
    pub(super) const ONE_USE: Self = Self(USE);

    #[inline]
    pub(super) fn is_dying(self) -> bool {
        self.0 & DYING != 0
    }

    #[inline]
    pub(super) fn is_doomed(self) -> bool {
        self.0 & DOOMED != 0
    }

    #[inline]
    pub(super) fn is_detached(self) -> bool {
        self.0 & DETACHED != 0
    }

    #[inline]
    pub(super) fn is_awaited(self) -> bool {
        self.is_dying() && self.0 & AWAITED != 0
    }

    /// References.
    #[inline]
    pub(super) fn uses(self) -> u64 {
        if self.is_dying() {
            0
        } else {
            self.0 & USES_MAX
        }
    }

    /// Uses without a reference, given back by number.
    #[inline]
    pub(super) fn raw_uses(self) -> u64 {
        if self.is_dying() {
            0
        } else {
            (self.0 >> RAW_SHIFT) & RAW_MAX
        }
    }

    /// No use of either kind, and live.
    #[inline]
    fn is_unused(self) -> bool {
        self.0 & (DYING | USES_MAX | RAW_MAX << RAW_SHIFT) == 0
    }

    /// With one more use; `None` if it is dying.
    #[inline]
    pub(super) fn acquired(self) -> Option<Self> {
        (!self.is_dying()).then(|| {
            let stuck = self.0 & USES_MAX == USES_MAX;
            Self(self.0 + if stuck { 0 } else { USE })
        })
    }

    /// With one use less; dying if that was the last one and somebody waits for it.
    #[inline]
    pub(super) fn released(self) -> Self {
        debug_assert!(self.uses() > 0, "released more often than acquired");
        let stuck = self.0 & USES_MAX == USES_MAX;
        Self(self.0 - if stuck { 0 } else { USE }).ended_if_due()
    }

    /// A use turned into a raw one. Without an index nobody could give a raw one back: it ends.
    #[inline]
    pub(super) fn made_raw(self) -> Self {
        if self.is_detached() {
            return self.released();
        }
        let raw = if self.raw_uses() == RAW_MAX {
            0
        } else {
            RAW_USE
        };
        Self(self.0 + raw).released()
    }

    /// With up to `n` raw uses less; `None` if there is nothing to give back.
    #[inline]
    pub(super) fn forgotten(self, n: u64) -> Option<Self> {
        let raw = self.raw_uses();
        let less = if raw == RAW_MAX { 0 } else { n.min(raw) };
        (less > 0).then(|| Self(self.0 - (less << RAW_SHIFT)).ended_if_due())
    }

    /// Doomed; dying at once if there is no use.
    #[inline]
    pub(super) fn doomed(self) -> Self {
        Self(self.0 | DOOMED).ended_if_due()
    }

    /// No longer doomed.
    #[inline]
    pub(super) fn spared(self) -> Self {
        Self(self.0 & !DOOMED)
    }

    /// Dying, if it was live without any use.
    #[inline]
    pub(super) fn evicted(self) -> Option<Self> {
        self.is_unused().then_some(Self(self.0 | DYING))
    }

    #[inline]
    fn ended_if_due(self) -> Self {
        match self.evicted() {
            Some(dying) if self.0 & (DOOMED | DETACHED) != 0 => dying,
            _ => self,
        }
    }

    /// Back to life after dying, unused.
    #[inline]
    pub(super) fn revived(self) -> Self {
        debug_assert!(self.is_dying() && self.0 & BURIED == 0, "revived {self:?}");
        Self(self.0 & !(DYING | AWAITED))
    }

    /// With the mark of a waiter; `None` if there is nothing to wait for.
    pub(super) fn awaited(self) -> Option<Self> {
        (self.is_dying() && self.0 & BURIED == 0).then_some(Self(self.0 | AWAITED))
    }

    /// After the end of its index. Raw uses end with it, and so does an object without others.
    pub(super) fn detached(self) -> Self {
        if self.is_dying() {
            return Self(self.0 | DETACHED);
        }
        Self(self.0 & !(RAW_MAX << RAW_SHIFT) | DETACHED).ended_if_due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_stick_at_their_maximum_for_ever() {
        let full = Word(USES_MAX - 1).acquired().unwrap();
        assert_eq!(full.acquired(), Some(full));
        assert_eq!(full.released(), full);
        assert_eq!(full.doomed().released(), full.doomed());
        assert!(!full.detached().released().is_dying());
    }

    #[test]
    fn raw_uses_stick_at_their_maximum_for_ever() {
        let full = Word((RAW_MAX - 1) << RAW_SHIFT | 2).made_raw();
        assert_eq!((full.uses(), full.raw_uses()), (1, RAW_MAX));
        assert_eq!(full.forgotten(7), None);
        let unused = full.made_raw();
        assert_eq!((unused.uses(), unused.raw_uses()), (0, RAW_MAX));
        assert_eq!(unused.forgotten(u64::MAX), None);
        assert!(!unused.is_doomed() && unused.evicted().is_none());
    }

    #[test]
    fn giving_back_too_much_takes_no_use_of_a_reference() {
        let word = Word((RAW_USE * 3) | 2).doomed();
        let word = word.forgotten(u64::MAX).unwrap();
        assert_eq!((word.uses(), word.raw_uses()), (2, 0));
        assert_eq!(word.forgotten(1), None);
        assert!(word.released().released().is_dying());
    }

    #[test]
    fn only_the_last_use_of_a_doomed_object_ends_it() {
        assert!(!Word::ONE_USE.released().is_dying());
        assert!(Word::ONE_USE.doomed().released().is_dying());
        assert!(!Word::ONE_USE.doomed().spared().released().is_dying());
        assert!(!Word::ONE_USE.doomed().made_raw().is_dying());
        let raw = Word::ONE_USE.doomed().made_raw();
        assert!(raw.forgotten(1).unwrap().is_dying());
    }

    #[test]
    fn a_dying_object_gets_no_use_and_keeps_its_doom() {
        let dying = Word::ONE_USE.doomed().released().awaited().unwrap();
        assert_eq!(dying.acquired(), None);
        assert_eq!(dying.forgotten(1), None);
        assert_eq!(dying.evicted(), None);
        assert_eq!((dying.uses(), dying.raw_uses()), (0, 0));
        assert!(dying.is_awaited() && dying.revived().is_doomed());
        assert_eq!(dying.revived().uses(), 0);
        assert_eq!(Word(dying.0 | BURIED).awaited(), None);
    }

    #[test]
    fn an_object_without_index_ends_with_its_last_reference() {
        let word = Word((RAW_USE * 3) | 2).detached();
        assert_eq!((word.uses(), word.raw_uses()), (2, 0));
        assert!(word.made_raw().released().is_dying());
        assert!(!word.made_raw().released().is_doomed());
        assert!(Word(RAW_USE).detached().is_dying());
    }
}
