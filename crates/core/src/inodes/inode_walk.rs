//! The state of a walk over all inodes.

/// A visitor's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Continue with the next inode.
    Continue,
    /// Stop; the walk can continue later behind this inode.
    Stop,
}

/// Does a walk reference an inode and visit it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    No,
    Yes,
    /// Yes, and visit it before any other inode is referenced.
    Last,
}

impl From<bool> for Take {
    fn from(wanted: bool) -> Self {
        match wanted {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

/// The state of a walk over the inodes in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeWalk {
    /// The number to continue from.
    pub(super) next: Option<u64>,
    /// The end of the range, exclusive.
    pub(super) end: u64,
    pub(super) used_only: bool,
}

impl InodeWalk {
    /// A walk over all inodes.
    #[must_use]
    pub fn new() -> Self {
        Self::range(0, u64::MAX)
    }

    /// A walk over the inodes with greater numbers.
    pub(crate) fn after(last: crate::types::Ino) -> Self {
        Self::range(last.0.saturating_add(1), u64::MAX)
    }

    pub(crate) fn range(from: u64, end: u64) -> Self {
        Self {
            next: Some(from),
            end,
            used_only: false,
        }
    }

    /// Skips unreferenced inodes. An inode that several threads used lately is visited in any case:
    /// its reference count is split by core and cannot be summed atomically.
    #[must_use]
    pub fn used_only(mut self) -> Self {
        self.used_only = true;
        self
    }

    /// Is the walk complete?
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.next.is_none()
    }
}

impl Default for InodeWalk {
    fn default() -> Self {
        Self::new()
    }
}
