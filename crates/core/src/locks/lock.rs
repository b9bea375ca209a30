//! The parts of a lock: owner, space, kind, range.

use holdfast_types::{Errno, Result};

/// The owner of a lock: a number chosen by the front end, compared within one [`LockSpace`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockOwner(pub u64);

/// Shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// Shared: excludes writers.
    Read,
    /// Exclusive: excludes everyone else.
    Write,
}

/// Which of the three families a lock belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockSpace {
    /// Record locks of a process (`F_SETLK`): gone when it closes any descriptor of the file.
    Posix,
    /// Record locks of an open file (`F_OFD_SETLK`): gone when that is closed.
    Ofd,
    /// Whole-file locks of an open file (flock(2)), which the other two never see.
    Flock,
}

/// Bytes `start..=end` of a file; an `end` of `u64::MAX` has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockRange {
    /// First byte.
    pub start: u64,
    /// Last byte.
    pub end: u64,
}

/// A lock that is held, or requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// Shared or exclusive.
    pub kind: LockKind,
    /// The bytes locked.
    pub range: LockRange,
    /// The process that took it.
    pub pid: u32,
    /// The family.
    pub space: LockSpace,
    /// The owner within the family.
    pub owner: LockOwner,
}

/// A requested change: take, convert or (`kind == None`) release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockRequest {
    pub(crate) owner: LockOwner,
    pub(crate) space: LockSpace,
    pub(crate) kind: Option<LockKind>,
    /// Ignored by [`LockSpace::Flock`].
    pub(crate) range: LockRange,
    pub(crate) pid: u32,
}

impl LockRange {
    /// Every byte a file can have.
    pub const WHOLE: Self = Self {
        start: 0,
        end: u64::MAX,
    };

    /// Do both ranges have a common byte?
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// The range of a lock of this family: the whole file for flock(2).
    ///
    /// # Errors
    /// `EINVAL` for a range that ends before it starts.
    pub(super) fn within(self, space: LockSpace) -> Result<Self> {
        match space {
            LockSpace::Flock => Ok(Self::WHOLE),
            _ if self.start > self.end => Err(Errno::EINVAL),
            _ => Ok(self),
        }
    }

    /// The smallest range that holds both.
    pub(super) fn hull(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

impl LockSpace {
    /// Can locks of the two families exclude each other?
    pub(super) fn meets(self, other: Self) -> bool {
        (self == Self::Flock) == (other == Self::Flock)
    }
}

impl HeldLock {
    /// Do both locks exclude each other?
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        self.space.meets(other.space)
            && (self.space, self.owner) != (other.space, other.owner)
            && (self.kind == LockKind::Write || other.kind == LockKind::Write)
            && self.range.intersects(other.range)
    }
}
