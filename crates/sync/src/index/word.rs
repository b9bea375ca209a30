//! State, uses and raw uses of an object in one word, and what each step makes of it.
//!
//! Pure arithmetic: [`held`](super::held) and its neighbours put it into compare-exchange loops.
//!
//! ```text
//! bit 63       62      61     60      59..28     27..0
//! detached  shared  dying  doomed   raw uses    uses
//! ```
//!
//! While an object is *shared*, its uses are counted beside the word, by each core for itself (see
//! [`shares`](super::shares)); the field then holds [`BIAS`] and what the others leave to it.
//!
//! *Invariants.*
//! - Dying: no reference, and no use of either kind comes. Raw uses may be left, and are given back, until the object
//!   has left its index (`FREED`, for ever); one low bit more says that a lookup waits (`AWAITED`).
//! - Shared: neither dying nor detached, and never unused as far as the word is concerned.
//! - Counts that reach their maximum stay there: the object is never freed, however many uses
//!   were leaked. The same goes for a shared object whose field has used up its bias.

use super::shares::Counted;

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

const RAW_SHIFT: u32 = 28;
const RAW_MAX: u64 = u32::MAX as u64;
const USES_MAX: u64 = (1 << RAW_SHIFT) - 1;
const USE: u64 = 1;
const RAW_USE: u64 = 1 << RAW_SHIFT;

/// The last use to go ends the object.
const MARKED_FREEING: u64 = 1 << 60;
/// Ended, and in the hands of one `Freeing`.
const DYING: u64 = 1 << 61;
/// Uses are counted in shares too.
const SHARED: u64 = 1 << 62;
/// The index is gone: whoever ends the object frees it.
const DETACHED: u64 = 1 << 63;

/// Uses that nobody has, while shared: what others count may be below zero seen from here.
const BIAS: u64 = 1 << (RAW_SHIFT - 1);

/// While dying: somebody sleeps until that is over.
const AWAITED: u64 = 1;
/// While dying: out of the index. Raw uses are counted elsewhere from then on.
pub(super) const FREED: u64 = 2;

impl Word {
    /// Live, with one use.
    pub(super) const ONE_USE: Self = Self(USE);

    #[inline]
    pub(super) fn is_dying(self) -> bool {
        self.0 & DYING != 0
    }

    #[inline]
    pub(super) fn is_marked_freeing(self) -> bool {
        self.0 & MARKED_FREEING != 0
    }

    #[inline]
    pub(super) fn is_detached(self) -> bool {
        self.0 & DETACHED != 0
    }

    #[inline]
    pub(super) fn is_buried(self) -> bool {
        self.is_dying() && self.0 & FREED != 0
    }

    #[inline]
    pub(super) fn is_awaited(self) -> bool {
        self.is_dying() && self.0 & AWAITED != 0
    }

    #[inline]
    pub(super) fn is_shared(self) -> bool {
        self.0 & SHARED != 0
    }

    #[inline]
    fn field(self) -> u64 {
        self.0 & USES_MAX
    }

    /// References, less those in shares; while shared it may be negative.
    #[inline]
    pub(super) fn uses(self) -> i64 {
        if self.is_dying() {
            return 0;
        }
        // The field has 28 bits.
        self.field() as i64 - if self.is_shared() { BIAS as i64 } else { 0 }
    }

    /// Uses without a reference, given back by number: those that are counted here.
    #[inline]
    pub(super) fn raw_uses(self) -> u64 {
        if self.is_buried() {
            0
        } else {
            (self.0 >> RAW_SHIFT) & RAW_MAX
        }
    }

    /// With so many raw uses, of a word that has none.
    #[inline]
    pub(super) fn with_raw_uses(self, raw: u64) -> Self {
        debug_assert!(!self.is_dying() && self.raw_uses() == 0, "{self:?}");
        Self(self.0 | raw.min(RAW_MAX) << RAW_SHIFT)
    }

    /// As a word that had one use, and gives it back before anybody sees it.
    #[inline]
    pub(super) fn without_first_use(self) -> Self {
        debug_assert!(self.0 & !(RAW_MAX << RAW_SHIFT) == USE, "{self:?}");
        Self(self.0 - USE)
    }

    /// No use of either kind, and live.
    #[inline]
    fn is_unused(self) -> bool {
        self.0 & (DYING | SHARED | USES_MAX | (RAW_MAX << RAW_SHIFT)) == 0
    }

    /// Has nobody a reference, nor its end? (Raw uses are nobody's own.)
    #[inline]
    pub(super) fn is_unreferenced(self) -> bool {
        self.0 & (DYING | SHARED | DETACHED | USES_MAX) == 0
    }

    /// With one more use; `None` if it is dying.
    #[inline]
    pub(super) fn acquired(self) -> Option<Self> {
        (!self.is_dying()).then(|| {
            let stuck = self.field() == USES_MAX;
            Self(self.0 + if stuck { 0 } else { USE })
        })
    }

    /// As [`released`](Self::released), if nothing but that happens: neither shared nor about to end.
    #[inline]
    pub(super) fn simply_released(self) -> Option<Self> {
        let plain =
            self.0 & (MARKED_FREEING | DYING | SHARED | DETACHED) == 0 && self.field() < USES_MAX;
        plain.then(|| Self(self.0 - USE))
    }

    /// With one use less; dying if that was the last one and somebody waits for it.
    #[inline]
    pub(super) fn released(self) -> Self {
        debug_assert!(self.field() > 0, "released more often than acquired");
        match self.field() {
            USES_MAX => self,
            1 if self.is_shared() => self.stuck(),
            _ => Self(self.0 - USE).ended_if_due(),
        }
    }

    /// Never to be freed.
    #[cold]
    fn stuck(self) -> Self {
        Self(self.0 | USES_MAX)
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
    pub(super) fn freeing(self) -> Self {
        Self(self.0 | MARKED_FREEING).ended_if_due()
    }

    /// No longer doomed.
    #[inline]
    pub(super) fn spared(self) -> Self {
        Self(self.0 & !MARKED_FREEING)
    }

    /// Dying, if it was live without any use.
    #[inline]
    pub(super) fn evicted(self) -> Option<Self> {
        self.is_unused().then_some(Self(self.0 | DYING))
    }

    /// Dying, if it was live without a reference: raw uses stay until it is buried.
    #[inline]
    pub(super) fn evicted_though_held(self) -> Option<Self> {
        self.is_unreferenced().then_some(Self(self.0 | DYING))
    }

    #[inline]
    fn ended_if_due(self) -> Self {
        match self.evicted() {
            Some(dying) if self.0 & (MARKED_FREEING | DETACHED) != 0 => dying,
            _ => self,
        }
    }

    /// Shared from now on; `None` if it is already, or is about to end.
    pub(super) fn shared(self) -> Option<Self> {
        let settled = self.0 & (MARKED_FREEING | DYING | SHARED | DETACHED) == 0;
        (settled && self.field() < BIAS).then_some(Self((self.0 + BIAS) | SHARED))
    }

    /// No longer shared, the shares having counted so much.
    pub(super) fn unshared(self, counted: Counted) -> Self {
        debug_assert!(self.is_shared(), "{self:?}");
        let raw = (self.raw_uses() + counted.raw).min(RAW_MAX);
        let cleared = Self(self.0 & !(SHARED | USES_MAX | RAW_MAX << RAW_SHIFT) | raw << RAW_SHIFT);
        // In the word a raw use is none besides.
        let more = counted.uses.saturating_sub_unsigned(counted.raw);
        match u64::try_from(self.uses().saturating_add(more)) {
            Ok(uses) if uses < USES_MAX && self.field() != USES_MAX => Self(cleared.0 | uses),
            _ => cleared.stuck(),
        }
        .ended_if_due()
    }

    /// Has half of the bias been used up?
    pub(super) fn is_drained(self) -> bool {
        self.is_shared() && self.field() < BIAS / 2
    }

    /// Back to life after dying, without a reference.
    #[inline]
    pub(super) fn revived(self) -> Self {
        debug_assert!(self.is_dying() && self.0 & FREED == 0, "revived {self:?}");
        Self(self.0 & !(DYING | AWAITED))
    }

    /// With the mark of a waiter; `None` if there is nothing to wait for.
    pub(super) fn awaited(self) -> Option<Self> {
        (self.is_dying() && self.0 & FREED == 0).then_some(Self(self.0 | AWAITED))
    }

    /// After the end of its index; not while shared. Raw uses end with it, and so does an object without others.
    pub(super) fn detached(self) -> Self {
        debug_assert!(!self.is_shared(), "{self:?}");
        if self.is_dying() {
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
        assert_eq!(full.freeing().released(), full.freeing());
        assert!(!full.detached().released().is_dying());
    }

    #[test]
    fn what_is_simply_released_is_what_is_released() {
        let flags = [
            0,
            MARKED_FREEING,
            DYING,
            SHARED,
            DETACHED,
            MARKED_FREEING | DETACHED,
        ];
        let fields = [1, 2, BIAS, USES_MAX - 1, USES_MAX];
        let mut simple = 0;
        for flags in flags {
            for field in fields {
                for raw in [0, RAW_USE, RAW_MAX << RAW_SHIFT] {
                    let word = Word(flags | raw | field);
                    if let Some(after) = word.simply_released() {
                        assert_eq!(after, word.released());
                        assert!(!after.is_dying());
                        simple += 1;
                    }
                }
            }
        }
        assert_eq!(simple, 12, "those without a flag that are not stuck");
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
    fn giving_back_too_much_takes_no_use_of_a_reference() {
        let word = Word((RAW_USE * 3) | 2).freeing();
        let word = word.forgotten(u64::MAX).unwrap();
        assert_eq!((word.uses(), word.raw_uses()), (2, 0));
        assert_eq!(word.forgotten(1), None);
        assert!(word.released().released().is_dying());
    }

    #[test]
    fn only_the_last_use_of_a_doomed_object_ends_it() {
        assert!(!Word::ONE_USE.released().is_dying());
        assert!(Word::ONE_USE.freeing().released().is_dying());
        assert!(!Word::ONE_USE.freeing().spared().released().is_dying());
        assert!(!Word::ONE_USE.freeing().made_raw().is_dying());
        let raw = Word::ONE_USE.freeing().made_raw();
        assert!(raw.forgotten(1).unwrap().is_dying());
    }

    #[test]
    fn a_dying_object_gets_no_use_and_keeps_its_doom() {
        let dying = Word::ONE_USE.freeing().released().awaited().unwrap();
        assert_eq!(dying.acquired(), None);
        assert_eq!(dying.forgotten(1), None);
        assert_eq!(dying.evicted(), None);
        assert_eq!((dying.uses(), dying.raw_uses()), (0, 0));
        assert!(dying.is_awaited() && dying.revived().is_marked_freeing());
        assert_eq!(dying.revived().uses(), 0);
        assert_eq!(Word(dying.0 | FREED).awaited(), None);
    }

    #[test]
    fn an_evicted_object_keeps_raw_uses_until_it_is_buried() {
        let held = Word::ONE_USE.with_raw_uses(3);
        assert_eq!((held.uses(), held.raw_uses()), (1, 3));
        assert_eq!(held.evicted_though_held(), None, "in use");
        let dying = held.without_first_use().evicted_though_held().unwrap();
        assert!(dying.is_dying() && dying.evicted_though_held().is_none());
        assert_eq!((dying.raw_uses(), dying.acquired()), (3, None));
        let dying = dying.awaited().unwrap().forgotten(2).unwrap();
        assert_eq!((dying.raw_uses(), dying.revived().raw_uses()), (1, 1));
        assert!(dying.freeing().forgotten(1).unwrap().is_dying());
        let buried = Word(dying.0 | FREED);
        assert_eq!((buried.raw_uses(), buried.forgotten(1)), (0, None));
        let full = Word::ONE_USE.with_raw_uses(u64::MAX).without_first_use();
        assert_eq!(full.evicted_though_held().unwrap().raw_uses(), RAW_MAX);
    }

    #[test]
    fn sharing_changes_no_count_and_hides_the_end() {
        let word = Word((RAW_USE * 3) | 2).shared().unwrap();
        assert_eq!((word.uses(), word.raw_uses()), (2, 3));
        assert_eq!(word.shared(), None);
        let over = word.released().released().released().freeing();
        assert_eq!(over.uses(), -1);
        assert!(!over.forgotten(3).unwrap().is_dying() && over.evicted().is_none());
        assert_eq!(over.unshared(uses(2)).uses(), 1);
        assert!(over.forgotten(3).unwrap().unshared(uses(1)).is_dying());
        assert!(!over.unshared(uses(1)).is_dying(), "raw uses are left");
    }

    #[test]
    fn shares_out_of_bounds_make_an_object_immortal() {
        let word = Word::ONE_USE.shared().unwrap();
        let stuck = Word(USES_MAX);
        assert_eq!(word.unshared(uses(-2)), stuck);
        assert_eq!(word.unshared(uses(USES_MAX as i64)), stuck);
        assert_eq!(word.unshared(uses(i64::MAX)), stuck);
        assert_eq!(Word(SHARED | 1).released().unshared(uses(0)), stuck);
        assert_eq!(
            Word(SHARED | USES_MAX).acquired(),
            Some(Word(SHARED | USES_MAX))
        );
        assert_eq!(Word(SHARED | USES_MAX).unshared(uses(-5)), stuck);
        assert!(stuck.shared().is_none() && stuck.evicted().is_none());
        assert!(Word(SHARED | (BIAS / 2 - 1)).is_drained() && !word.is_drained());
    }

    #[test]
    fn raw_uses_come_back_from_shares_as_such() {
        let word = Word((RAW_USE * 3) | 2).shared().unwrap();
        let counted = Counted { uses: 3, raw: 2 };
        let over = word.unshared(counted);
        assert_eq!((over.uses(), over.raw_uses()), (3, 5));
        // Given back elsewhere than they were counted: -2 uses there, 3 raw ones here.
        let over = word.unshared(Counted { uses: 1, raw: 3 });
        assert_eq!((over.uses(), over.raw_uses()), (0, 6));
        let full = Word((RAW_MAX - 1) << RAW_SHIFT).shared().unwrap();
        let over = full.unshared(Counted { uses: 5, raw: 5 });
        assert_eq!(over.raw_uses(), RAW_MAX);
    }

    #[test]
    fn what_is_about_to_end_is_not_shared() {
        assert_eq!(Word::ONE_USE.freeing().shared(), None);
        assert_eq!(Word::ONE_USE.detached().shared(), None);
        assert_eq!(Word(0).evicted().unwrap().shared(), None);
    }

    #[test]
    fn an_object_without_index_ends_with_its_last_reference() {
        let word = Word((RAW_USE * 3) | 2).detached();
        assert_eq!((word.uses(), word.raw_uses()), (2, 0));
        assert!(word.made_raw().released().is_dying());
        assert!(!word.made_raw().released().is_marked_freeing());
        assert!(Word(RAW_USE).detached().is_dying());
    }
}
