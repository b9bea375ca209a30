//! What an inode is to those who know it by its number: callers, the store, and threads that wait for a turn there.

use holdfast_sync::epoch;
use parking_lot::Mutex;
use std::sync::atomic::Ordering;

use super::{Inode, Meta, TURN};
use crate::log_order::HasTurn;
use crate::store::{InodeRecord, StoredSpace};
use crate::types::{Attr, Ino};

/// What depends on an inode's number.
pub(crate) trait Numbered {
    /// Its number.
    fn ino(&self) -> Ino;
    /// All attributes, as `meta` has them.
    fn attr(&self, meta: &Meta) -> Attr;
    /// All attributes, to be told to somebody.
    fn told(&self) -> Attr;
    /// The inode as a store keeps it.
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
    fn told(&self) -> Attr {
        self.tells_times();
        self.attr(&self.meta())
    }

    // What was put together word by word, and is then taken in wider pieces, waits for its way through the cache.
    #[inline(always)]
    fn record(&self, meta: &Meta) -> InodeRecord {
        let parent = match self.directory() {
            Ok(body) => Ino(body.parent.load(Ordering::Relaxed)),
            Err(_) => meta.home.0,
        };
        // A guard is taken for those that may have it only, which each directory may.
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

impl HasTurn for Inode {
    fn number(&self) -> u64 {
        self.key()
    }

    fn turn(&self) -> &Mutex<()> {
        &self.pages.beside()[TURN]
    }
}
