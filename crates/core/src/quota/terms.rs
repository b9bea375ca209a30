//! The types of quotas: kinds, owners, limits, usage.

use crate::types::{Caller, Caps, Time};
use std::time::Duration;

/// The files that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuotaKind {
    /// The files of one user.
    User,
    /// The files of one group.
    Group,
}

/// The user and the group of an inode, which are both charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    /// The user.
    pub(crate) uid: u32,
    /// The group.
    pub(crate) gid: u32,
}

impl Owner {
    /// The user, then the group.
    pub(super) fn ids(self) -> [(QuotaKind, u32); 2] {
        [(QuotaKind::User, self.uid), (QuotaKind::Group, self.gid)]
    }
}

/// Limits of pages or of inodes; `None` is no limit, and `Some(0)` allows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuotaLimit {
    /// May be exceeded for the grace period; then it becomes a hard limit.
    pub soft: Option<u64>,
    /// Never exceeded, except by privileged callers and by earlier usage.
    pub hard: Option<u64>,
}

/// Limits of one user or group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuotaLimits {
    /// Bytes of content, rounded down to pages of 4 KiB.
    pub bytes: QuotaLimit,
    /// Inodes of any type.
    pub inodes: QuotaLimit,
}

/// How long soft limits may be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaGrace {
    /// For bytes.
    pub bytes: Duration,
    /// For inodes.
    pub inodes: Duration,
}

impl Default for QuotaGrace {
    /// Seven days, as in quota(5).
    fn default() -> Self {
        let week = Duration::from_secs(7 * 24 * 3600);
        Self {
            bytes: week,
            inodes: week,
        }
    }
}

/// The usage of one user or group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuotaUsage {
    /// Bytes of content, in whole pages of 4 KiB.
    pub bytes: u64,
    /// Inodes of any type, also those without a name.
    pub inodes: u64,
}

/// The account of one user or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaRecord {
    /// User or group?
    pub kind: QuotaKind,
    /// Its number.
    pub id: u32,
    /// Its usage.
    pub usage: QuotaUsage,
    /// Its limits.
    pub limits: QuotaLimits,
    /// When the soft limit of bytes becomes hard, if it is exceeded.
    pub bytes_deadline: Option<Time>,
    /// When the soft limit of inodes becomes hard, if it is exceeded.
    pub inodes_deadline: Option<Time>,
}

/// Are limits enforced for this caller?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Yes: a charge beyond a limit fails with `EDQUOT`.
    Limits,
    /// No: it has `CAP_SYS_RESOURCE`, or the charge is for existing data.
    Nothing,
}

impl Check {
    /// The check for this caller, by its own capabilities: a kernel that has checked permissions
    /// does not know the limits.
    #[inline]
    pub(crate) fn of(who: &Caller) -> Self {
        if who.caps.contains(Caps::SYS_RESOURCE) {
            Self::Nothing
        } else {
            Self::Limits
        }
    }
}
