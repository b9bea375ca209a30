//! The words of quotas: whose, how much at most, how much now.

use crate::types::{Caller, Caps, Time};
use std::time::Duration;

/// Bytes of a page: space is counted in whole ones.
const PAGE: u64 = 4096;

/// "No limit", as balances keep it.
pub(super) const NONE: u64 = u64::MAX;

/// Whose files are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuotaKind {
    /// The files of one user.
    User,
    /// The files of one group.
    Group,
}

/// Both kinds, in their order.
pub(super) const KINDS: [QuotaKind; 2] = [QuotaKind::User, QuotaKind::Group];

/// To whom an inode is charged: to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    /// The user.
    pub(crate) uid: u32,
    /// The group.
    pub(crate) gid: u32,
}

impl Owner {
    pub(super) fn id(self, kind: QuotaKind) -> u32 {
        match kind {
            QuotaKind::User => self.uid,
            QuotaKind::Group => self.gid,
        }
    }
}

/// Limits on one thing that is counted; `None` is no limit, and `Some(0)` allows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuotaLimit {
    /// May be exceeded for the grace period; afterwards it is as hard as the other.
    pub soft: Option<u64>,
    /// Never exceeded, except by the privileged and by what was there before the limit.
    pub hard: Option<u64>,
}

/// Limits of one user or group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuotaLimits {
    /// Bytes of content, kept rounded down to pages of 4 KiB.
    pub bytes: QuotaLimit,
    /// Inodes of any type.
    pub inodes: QuotaLimit,
}

/// For how long soft limits may be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaGrace {
    /// That on bytes.
    pub bytes: Duration,
    /// That on inodes.
    pub inodes: Duration,
}

impl Default for QuotaGrace {
    /// Seven days, as quota(5) has it.
    fn default() -> Self {
        let week = Duration::from_secs(7 * 24 * 3600);
        Self {
            bytes: week,
            inodes: week,
        }
    }
}

/// What one user or group has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuotaUsage {
    /// Bytes of content, in whole pages of 4 KiB.
    pub bytes: u64,
    /// Inodes of any type, those without a name included.
    pub inodes: u64,
}

/// All there is to say of one user or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaRecord {
    /// User or group?
    pub kind: QuotaKind,
    /// Its number.
    pub id: u32,
    /// What it has.
    pub usage: QuotaUsage,
    /// What it may have.
    pub limits: QuotaLimits,
    /// From when on the soft limit on bytes, exceeded now, is hard.
    pub bytes_deadline: Option<Time>,
    /// From when on the soft limit on inodes, exceeded now, is hard.
    pub inodes_deadline: Option<Time>,
}

/// Do limits count for this caller?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Yes: `EDQUOT` rather than passing one.
    Limits,
    /// No: it has `CAP_SYS_RESOURCE`, or what it charges is there already.
    Nothing,
}

impl Check {
    /// The check that this caller has to pass. Its own capabilities count: a front end's kernel
    /// that has checked permissions knows nothing of limits.
    #[inline]
    pub(crate) fn of(who: &Caller) -> Self {
        if who.caps.contains(Caps::SYS_RESOURCE) {
            Self::Nothing
        } else {
            Self::Limits
        }
    }
}

/// What is counted, as an index: pages.
pub(super) const PAGES: usize = 0;
/// What is counted, as an index: inodes.
pub(super) const INODES: usize = 1;
/// A number of each thing that is counted.
pub(super) type Amounts = [u64; 2];

impl QuotaUsage {
    pub(super) fn of(amounts: Amounts) -> Self {
        Self {
            bytes: amounts[PAGES].saturating_mul(PAGE),
            inodes: amounts[INODES],
        }
    }
}

impl QuotaLimits {
    /// Soft and hard limit of each thing, in pages and inodes.
    pub(super) fn bounds(&self) -> [(u64, u64); 2] {
        let bounds = |limit: QuotaLimit, unit| {
            let bound = |bound: Option<u64>| bound.map_or(NONE, |bound| bound / unit);
            (bound(limit.soft), bound(limit.hard))
        };
        [bounds(self.bytes, PAGE), bounds(self.inodes, 1)]
    }

    pub(super) fn from_bounds(bounds: [(u64, u64); 2]) -> Self {
        let limit = |(soft, hard), unit| {
            let bound = |bound: u64| (bound != NONE).then(|| bound.saturating_mul(unit));
            QuotaLimit {
                soft: bound(soft),
                hard: bound(hard),
            }
        };
        Self {
            bytes: limit(bounds[PAGES], PAGE),
            inodes: limit(bounds[INODES], 1),
        }
    }
}

impl QuotaGrace {
    /// Nanoseconds for each thing.
    pub(super) fn nanos(&self) -> [i64; 2] {
        [self.bytes, self.inodes].map(|time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_on_bytes_are_kept_in_whole_pages() {
        let given = QuotaLimits {
            bytes: QuotaLimit {
                soft: Some(4095),
                hard: Some(3 * 4096 + 1),
            },
            inodes: QuotaLimit {
                soft: None,
                hard: Some(7),
            },
        };
        assert_eq!(given.bounds(), [(0, 3), (NONE, 7)]);
        let kept = QuotaLimits::from_bounds(given.bounds());
        assert_eq!(
            (kept.bytes.soft, kept.bytes.hard),
            (Some(0), Some(3 * 4096))
        );
        assert_eq!(kept.inodes, given.inodes);
        assert_eq!(QuotaLimits::default().bounds(), [(NONE, NONE); 2]);
    }
}
