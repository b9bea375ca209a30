//! An open file description, as open(2) creates it.

use crate::locks::LockOwner;
use crate::node::Node;
use crate::registry::Opened;
use crate::types::{FileType, OpenFlags};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// Flags that fcntl(2) can change on an open file.
const CHANGEABLE: OpenFlags = OpenFlags::APPEND
    .union(OpenFlags::NONBLOCK)
    .union(OpenFlags::DIRECT)
    .union(OpenFlags::NOATIME);

/// An open file description, as open(2) creates it, with its own access mode and identity.
pub struct OpenFile {
    /// Dropped before `opened`: a thread that sees no open file also sees the effects of this drop.
    pub(crate) node: Node,
    pub(crate) opened: Opened,
    pub(crate) flags: AtomicI32,
    /// Do its operations cause events for watches?
    pub(crate) seen: bool,
    /// Was the store's failure reported to it, or did it open the file after that?
    pub(crate) reported: AtomicBool,
    /// The losses that it reported, or that precede it ([`crate::losses`]).
    pub(crate) losses: AtomicU64,
    /// Does the store keep the inode until this is closed?
    pub(crate) kept: bool,
    /// The lock owner's number, assigned at first use; 0 until then.
    pub(crate) owner: AtomicU64,
    /// The last cookie of a listing in progress; [`NO_END`](crate::listing::Listing::NO_END) before
    /// it begins.
    pub(crate) listing_end: AtomicU64,
}

impl OpenFile {
    /// The inode.
    #[inline]
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Access mode and flags.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> OpenFlags {
        OpenFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Sets APPEND, NONBLOCK, DIRECT and NOATIME as in `flags`; the other flags stay.
    pub fn set_flags(&self, flags: OpenFlags) {
        let old = self.flags();
        let new = old.difference(CHANGEABLE) | flags.intersection(CHANGEABLE);
        self.flags.store(new.bits(), Ordering::Relaxed);
    }

    /// Returns true the first time, unless the failure preceded the open: the caller reports it.
    pub(crate) fn take_report(&self) -> bool {
        // Relaxed: any one of concurrent callers may report it.
        !self.reported.swap(true, Ordering::Relaxed)
    }

    /// The owner of its flock(2) and open-file-description locks.
    #[must_use]
    pub fn owner(&self) -> LockOwner {
        let held = self.owner.load(Ordering::Acquire);
        if held != 0 {
            return LockOwner(held);
        }
        let fresh = self.opened.place().assign_owner();
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let first = self.owner.compare_exchange(0, fresh, order.0, order.1);
        LockOwner(first.map_or_else(|first| first, |_| fresh))
    }
}

impl OpenFile {
    /// Does the store keep the inode for writing?
    pub(crate) fn is_kept_for_writing(&self) -> bool {
        self.kept && self.is_writer()
    }

    /// Is this a regular file open for writing?
    pub(crate) fn is_writer(&self) -> bool {
        self.flags().writable() && self.node.kind() == FileType::Regular
    }
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile")
            .field("node", &self.node)
            .field("flags", &self.flags())
            .finish()
    }
}
