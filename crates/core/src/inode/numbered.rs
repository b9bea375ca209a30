//! An inode by its number: as callers and the store see it, and its place in the log order.

use holdfast_sync::epoch;
use parking_lot::Mutex;
use std::sync::atomic::Ordering;

use super::{Inode, Meta};
use crate::inode::object::LOG_ORDER;
use crate::log_order::LogOrdered;
use crate::store::{InodeRecord, StoredSpace};
use crate::types::{Attr, Ino};

/// Methods of an inode that need its number.
pub(crate) trait Numbered {
    /// Its number.
    fn ino(&self) -> Ino;
    /// All attributes, out of `meta`.
    fn attr(&self, meta: &Meta) -> Attr;
    /// All attributes, for a caller: marks the times as read.
    fn stat(&self) -> Attr;
    /// The record for the store.
    fn record(&self, meta: &Meta) -> InodeRecord;
}

impl Numbered for Inode {
    #[inline]
    fn ino(&self) -> Ino {
        Ino(self.key())
    }

    fn attr(&self, meta: &Meta) -> Attr {
        Attr {
            ino: self.ino(),
            kind: self.kind(),
            perm: meta.perm,
            nlink: meta.nlink,
            uid: meta.uid,
            gid: meta.gid,
            rdev: self.rdev(),
            size: meta.size,
            blocks: self.pages_held(meta.size) * 8,
            atime: meta.atime,
            mtime: meta.mtime,
            ctime: meta.ctime,
            btime: meta.btime,
        }
    }

    #[inline]
    fn stat(&self) -> Attr {
        self.mark_queried();
        self.attr(&self.meta())
    }

    // Inlined: a record that is stored word by word and then copied in wider pieces stalls.
    #[inline(always)]
    fn record(&self, meta: &Meta) -> InodeRecord {
        let parent = match self.directory() {
            Ok(body) => Ino(body.parent.load(Ordering::Relaxed)),
            Err(_) => meta.home.0,
        };
        // Pins an epoch only for an inode with an extension, which each directory has.
        let (xattrs, project) = match self.may_have_extra_attrs() {
            true => self
                .extra_attrs(&epoch::pin())
                .map_or((false, 0), |extra_attrs| (true, extra_attrs.project)),
            false => (false, 0),
        };
        InodeRecord {
            ino: self.ino(),
            kind: self.kind(),
            perm: meta.perm,
            nlink: meta.nlink,
            uid: meta.uid,
            gid: meta.gid,
            rdev: self.rdev(),
            size: meta.size,
            atime: meta.atime,
            mtime: meta.mtime,
            ctime: meta.ctime,
            btime: meta.btime,
            parent,
            xattrs,
            space: StoredSpace::UNKNOWN,
            flags: meta.flags,
            project,
        }
    }
}

impl LogOrdered for Inode {
    fn number(&self) -> u64 {
        self.key()
    }

    fn log_order(&self) -> &Mutex<()> {
        &self.pages.beside()[LOG_ORDER]
    }
}
