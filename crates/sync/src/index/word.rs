//! State, uses and raw uses of an object in one word, and the transitions of it.
//!
//! Pure arithmetic: [`held`](super::held) and its neighbours use it in compare-exchange loops.
//!
//! ```text
//! bit 63       62      61       60      59..28     27..0 detached  shared  freeing  marked   raw
//! uses    uses
//! ```
//!
//! While an object is *shared*, its uses are counted per core beside the word (see
//! [`shares`](super::shares)). The field `uses` then holds [`BIAS`] and the uses that the shares
//! leave to it.
//!
//! *Invariants.*
//! - Freeing: there is no reference, and no use of either kind is added. Raw uses may be left, and
//!   are given back here until the object has left its index (`FREED`, for ever). Another low bit
//!   says that a lookup waits (`AWAITED`).
//! - Shared: neither freeing nor detached, and never unused as far as the word shows.
//! - A count that reaches its maximum stays there, so the object is never freed, however many uses
//!   were leaked. The same holds for a shared object that has used up its bias.

use super::shares::Counted;

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

const RAW_SHIFT: u32 = 28;
const RAW_MAX: u64 = u32::MAX as u64;
const USES_MAX: u64 = (1 << RAW_SHIFT) - 1;
const USE: u64 = 1;
const RAW_USE: u64 = 1 << RAW_SHIFT;

/// Releasing the last use makes the object freeing.
const MARKED: u64 = 1 << 60;
/// One `Freeing` owns the object's end.
const FREEING: u64 = 1 << 61;
/// Uses are counted in shares too.
const SHARED: u64 = 1 << 62;
/// The index was dropped: the thread that makes the object freeing frees it.
const DETACHED: u64 = 1 << 63;

/// Added to the uses while shared, because the word's own part of the sum may be negative.
const BIAS: u64 = 1 << (RAW_SHIFT - 1);

/// While freeing: a thread sleeps until that ends.
const AWAITED: u64 = 1;
/// While freeing: out of the index. Raw uses are counted elsewhere from then on.
pub(super) const FREED: u64 = 2;

impl Word {
    /// Live, with one use.
    pub(super) const ONE_USE: Self = Self(USE);

    #[inline]
    pub(super) fn is_freeing(self) -> bool {
        self.0 & FREEING != 0
    }

    #[inline]
    pub(super) fn is_marked_freeing(self) -> bool {
        self.0 & MARKED != 0
    }

    #[inline]
    pub(super) fn is_detached(self) -> bool {
        self.0 & DETACHED != 0
    }

    #[inline]
    pub(super) fn is_freed(self) -> bool {
        self.is_freeing() && self.0 & FREED != 0
    }

    #[inline]
    pub(super) fn is_awaited(self) -> bool {
        self.is_freeing() && self.0 & AWAITED != 0
    }

    #[inline]
    pub(super) fn is_shared(self) -> bool {
        self.0 & SHARED != 0
    }

    #[inline]
    fn field(self) -> u64 {
        self.0 & USES_MAX
    }

    /// References, less those in shares. While shared it may be negative.
    #[inline]
    pub(super) fn uses(self) -> i64 {
        if self.is_freeing() {
            return 0;
        }
        // The field has 28 bits.
        self.field() as i64 - if self.is_shared() { BIAS as i64 } else { 0 }
    }

    /// Uses without a reference that are counted here; their owners give them back by number.
    #[inline]
    pub(super) fn raw_uses(self) -> u64 {
        if self.is_freed() {
            0
        } else {
            (self.0 >> RAW_SHIFT) & RAW_MAX
        }
    }

    /// This word, which has no raw uses, with `raw` of them.
    #[inline]
    pub(super) fn with_raw_uses(self, raw: u64) -> Self {
        debug_assert!(!self.is_freeing() && self.raw_uses() == 0, "{self:?}");
        Self(self.0 | raw.min(RAW_MAX) << RAW_SHIFT)
    }

    /// No use of either kind, and live.
    #[inline]
    fn is_unused(self) -> bool {
        self.0 & (FREEING | SHARED | USES_MAX | (RAW_MAX << RAW_SHIFT)) == 0
    }

    /// No reference, not freeing, and not detached. (Raw uses are not references.)
    #[inline]
    pub(super) fn is_unreferenced(self) -> bool {
        self.0 & (FREEING | SHARED | DETACHED | USES_MAX) == 0
    }

    /// With one more use; `None` if it is freeing.
    #[inline]
    pub(super) fn acquired(self) -> Option<Self> {
        (!self.is_freeing()).then(|| {
            let saturated = self.field() == USES_MAX;
            Self(self.0 + if saturated { 0 } else { USE })
        })
    }

    /// With one use less; freeing if that was the last one and the object is marked or detached.
    #[inline]
    pub(super) fn released(self) -> Self {
        debug_assert!(self.field() > 0, "released more often than acquired");
        match self.field() {
            USES_MAX => self,
            1 if self.is_shared() => self.saturated(),
            _ => Self(self.0 - USE).ended_if_due(),
        }
    }

    /// Never to be freed.
    #[cold]
    fn saturated(self) -> Self {
        Self(self.0 | USES_MAX)
    }

    /// A use turned into a raw one. Without an index a raw use could not be given back, so it is
    /// released.
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

    /// With up to `n` raw uses less; `None` if there is none to give back.
    #[inline]
    pub(super) fn forgotten(self, n: u64) -> Option<Self> {
        let raw = self.raw_uses();
        let less = if raw == RAW_MAX { 0 } else { n.min(raw) };
        (less > 0).then(|| Self(self.0 - (less << RAW_SHIFT)).ended_if_due())
    }

    /// Marked for freeing; freeing at once if there is no use.
    #[inline]
    pub(super) fn marked(self) -> Self {
        Self(self.0 | MARKED).ended_if_due()
    }

    /// No longer marked for freeing.
    #[inline]
    pub(super) fn unmarked(self) -> Self {
        Self(self.0 & !MARKED)
    }

    /// Freeing, if it was live without any use.
    #[inline]
    pub(super) fn evicted(self) -> Option<Self> {
        self.is_unused().then_some(Self(self.0 | FREEING))
    }

    /// Freeing, if it was live without a reference: raw uses stay until it is taken out.
    #[inline]
    pub(super) fn evicted_though_held(self) -> Option<Self> {
        self.is_unreferenced().then_some(Self(self.0 | FREEING))
    }

    #[inline]
    fn ended_if_due(self) -> Self {
        match self.evicted() {
            Some(freeing) if self.0 & (MARKED | DETACHED) != 0 => freeing,
            _ => self,
        }
    }

    /// Shared; `None` if it is already, or is about to end.
    pub(super) fn shared(self) -> Option<Self> {
        let settled = self.0 & (MARKED | FREEING | SHARED | DETACHED) == 0;
        (settled && self.field() < BIAS).then_some(Self((self.0 + BIAS) | SHARED))
    }

    /// No longer shared; the shares have counted `counted`.
    pub(super) fn unshared(self, counted: Counted) -> Self {
        debug_assert!(self.is_shared(), "{self:?}");
        let raw = (self.raw_uses() + counted.raw).min(RAW_MAX);
        let cleared = Self(self.0 & !(SHARED | USES_MAX | RAW_MAX << RAW_SHIFT) | raw << RAW_SHIFT);
        // The word counts a raw use only as such; a share counts it as a use too.
        let more = counted.uses.saturating_sub_unsigned(counted.raw);
        match u64::try_from(self.uses().saturating_add(more)) {
            Ok(uses) if uses < USES_MAX && self.field() != USES_MAX => Self(cleared.0 | uses),
            _ => cleared.saturated(),
        }
        .ended_if_due()
    }

    /// Has half of the bias been used up?
    pub(super) fn is_drained(self) -> bool {
        self.is_shared() && self.field() < BIAS / 2
    }

    /// Live again after freeing, without a reference.
    #[inline]
    pub(super) fn revived(self) -> Self {
        debug_assert!(self.is_freeing() && self.0 & FREED == 0, "revived {self:?}");
        Self(self.0 & !(FREEING | AWAITED))
    }

    /// With the mark of a waiter; `None` if there is nothing to wait for.
    pub(super) fn awaited(self) -> Option<Self> {
        (self.is_freeing() && self.0 & FREED == 0).then_some(Self(self.0 | AWAITED))
    }

    /// After the drop of its index; not while shared. Raw uses end with it, and so does an object
    /// without references.
    pub(super) fn detached(self) -> Self {
        debug_assert!(!self.is_shared(), "{self:?}");
        if self.is_freeing() {
            return Self(self.0 | DETACHED);
        }
        Self(self.0 & !(RAW_MAX << RAW_SHIFT) | DETACHED).ended_if_due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(uses: i64) -> Counted {
        Counted { uses, raw: 0 }
    }

    #[test]
    fn uses_stick_at_their_maximum_for_ever() {
        let full = Word(USES_MAX - 1).acquired().unwrap();
        assert_eq!(full.acquired(), Some(full));
        assert_eq!(full.released(), full);
        assert_eq!(full.marked().released(), full.marked());
        assert!(!full.detached().released().is_freeing());
    }

    #[test]
    fn raw_uses_stick_at_their_maximum_for_ever() {
        let full = Word((RAW_MAX - 1) << RAW_SHIFT | 2).made_raw();
        assert_eq!((full.uses(), full.raw_uses()), (1, RAW_MAX));
        assert_eq!(full.forgotten(7), None);
        let unused = full.made_raw();
        assert_eq!((unused.uses(), unused.raw_uses()), (0, RAW_MAX));
        assert_eq!(unused.forgotten(u64::MAX), None);
        assert!(!unused.is_marked_freeing() && unused.evicted().is_none());
    }

    #[test]
    fn an_evicted_object_keeps_raw_uses_until_it_is_freed() {
        let held = Word::ONE_USE.with_raw_uses(3);
        assert_eq!((held.uses(), held.raw_uses()), (1, 3));
        assert_eq!(held.evicted_though_held(), None, "in use");
        let freeing = Word(held.0 - USE).evicted_though_held().unwrap();
        assert!(freeing.is_freeing() && freeing.evicted_though_held().is_none());
        assert_eq!((freeing.raw_uses(), freeing.acquired()), (3, None));
        let freeing = freeing.awaited().unwrap().forgotten(2).unwrap();
        assert_eq!((freeing.raw_uses(), freeing.revived().raw_uses()), (1, 1));
        assert!(freeing.marked().forgotten(1).unwrap().is_freeing());
        let freed = Word(freeing.0 | FREED);
        assert_eq!((freed.raw_uses(), freed.forgotten(1)), (0, None));
        let full = Word(Word::ONE_USE.with_raw_uses(u64::MAX).0 - USE);
        assert_eq!(full.evicted_though_held().unwrap().raw_uses(), RAW_MAX);
    }

    #[test]
    fn sharing_changes_no_count_and_hides_the_end() {
        let word = Word((RAW_USE * 3) | 2).shared().unwrap();
        assert_eq!((word.uses(), word.raw_uses()), (2, 3));
        assert_eq!(word.shared(), None);
        let over = word.released().released().released().marked();
        assert_eq!(over.uses(), -1);
        assert!(!over.forgotten(3).unwrap().is_freeing() && over.evicted().is_none());
        assert_eq!(over.unshared(uses(2)).uses(), 1);
        assert!(over.forgotten(3).unwrap().unshared(uses(1)).is_freeing());
        assert!(!over.unshared(uses(1)).is_freeing(), "raw uses are left");
    }

    #[test]
    fn shares_out_of_bounds_make_an_object_immortal() {
        let word = Word::ONE_USE.shared().unwrap();
        let saturated = Word(USES_MAX);
        assert_eq!(word.unshared(uses(-2)), saturated);
        assert_eq!(word.unshared(uses(USES_MAX as i64)), saturated);
        assert_eq!(word.unshared(uses(i64::MAX)), saturated);
        assert_eq!(Word(SHARED | 1).released().unshared(uses(0)), saturated);
        assert_eq!(
            Word(SHARED | USES_MAX).acquired(),
            Some(Word(SHARED | USES_MAX))
        );
        assert_eq!(Word(SHARED | USES_MAX).unshared(uses(-5)), saturated);
        assert!(saturated.shared().is_none() && saturated.evicted().is_none());
        assert!(Word(SHARED | (BIAS / 2 - 1)).is_drained() && !word.is_drained());
    }

    #[test]
    fn raw_uses_come_back_from_shares_as_such() {
        let word = Word((RAW_USE * 3) | 2).shared().unwrap();
        let counted = Counted { uses: 3, raw: 2 };
        let over = word.unshared(counted);
        assert_eq!((over.uses(), over.raw_uses()), (3, 5));
        // Given back on another core than they were counted on: -2 uses there, 3 raw ones here.
        let over = word.unshared(Counted { uses: 1, raw: 3 });
        assert_eq!((over.uses(), over.raw_uses()), (0, 6));
        let full = Word((RAW_MAX - 1) << RAW_SHIFT).shared().unwrap();
        let over = full.unshared(Counted { uses: 5, raw: 5 });
        assert_eq!(over.raw_uses(), RAW_MAX);
    }

    #[test]
    fn what_is_about_to_end_is_not_shared() {
        assert_eq!(Word::ONE_USE.marked().shared(), None);
        assert_eq!(Word::ONE_USE.detached().shared(), None);
        assert_eq!(Word(0).evicted().unwrap().shared(), None);
    }

    #[test]
    fn an_object_without_index_ends_with_its_last_reference() {
        let word = Word((RAW_USE * 3) | 2).detached();
        assert_eq!((word.uses(), word.raw_uses()), (2, 0));
        assert!(word.made_raw().released().is_freeing());
        assert!(!word.made_raw().released().is_marked_freeing());
        assert!(Word(RAW_USE).detached().is_freeing());
    }
}
