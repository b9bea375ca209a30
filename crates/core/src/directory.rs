//! The names of one directory.
//!
//! Names are kept in the order of their cookies: a listing that stopped at a cookie goes on behind
//! it, whatever was added or removed meanwhile. Lookups and listings take no lock and write nothing.
//! A rename within the directory happens at once for readers: they find the old name or the new one,
//! never both and never neither.
//!
//! Changes of the whole directory take turns, and so do all of one with few names. In one with many,
//! those of different names go side by side ([`Names::claim`]): each thread counts them, with
//! their times, in a lane of its own, and who wants to know asks all lanes ([`Directory::sums`]). The
//! inode's own attributes are then those of the time when it was last locked as a whole, and what
//! the lanes hold is to be added.
//!
//! *Invariants.* No two names have the same cookie. Those that one thread deals ascend; all that is
//! dealt by a thread that has locked the whole is greater than all before; and cookies of threads are not
//! below a clock, so that a name is listed behind those that were there when it was made, give or take
//! a tenth of a second. They are small: below 2^31 until tens of millions of names were made. A directory that is `dead` has no names and gets none.
//!
//! *Locking.* [`Directory::write`], [`Names::claim`]: see `docs/locking.md`.

mod loaded;
mod names;

use holdfast_sync::catalog::{Catalog, Claim, InsertError, Item, Sums};
use holdfast_sync::epoch::{self, Guard};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::inode::Object;
use crate::numbers::Chunk;
use crate::trails;
use crate::types::{Errno, FileType, Ino};

pub(crate) use loaded::Loaded;
pub(crate) use names::Names;
use names::Right;

/// Cookies 1 and 2 belong to `.` and `..`.
pub(crate) const FIRST_COOKIE: u64 = 3;

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Position in the listing.
    pub(crate) cookie: u64,
    /// The inode.
    pub(crate) ino: Ino,
    /// That inode's type.
    pub(crate) kind: FileType,
}

impl Entry {
    fn of(item: Item<'_>) -> Self {
        let (value, tag) = item.payload();
        Self::new(item.order(), value, tag)
    }

    fn new(cookie: u64, value: u64, tag: u8) -> Self {
        Self {
            cookie,
            ino: Ino(value),
            // Only types went in.
            kind: FileType::from_dirent(tag).unwrap_or(FileType::Regular),
        }
    }
}

/// The names of one directory.
pub(crate) struct Directory {
    catalog: Catalog,
    /// Removed: nothing can be created in it any more.
    dead: AtomicBool,
    /// All its names are here (else the store has to be asked first).
    complete: AtomicBool,
    /// Numbers for what is made here, over a store. Who has locked all names deals them.
    chunk: Chunk,
}

impl Directory {
    /// A directory without names; `complete`: the store has none either.
    pub(crate) fn empty(complete: bool) -> Self {
        Self {
            catalog: Catalog::new(),
            dead: AtomicBool::new(false),
            complete: AtomicBool::new(complete),
            chunk: Chunk::default(),
        }
    }

    /// What the name leads to.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<Entry> {
        self.find_in(name, &epoch::pin())
    }

    /// As [`Directory::find`], for who has a guard already.
    #[inline]
    pub(crate) fn find_in(&self, name: &[u8], guard: &Guard) -> Option<Entry> {
        trails::with(&self.catalog, |trail| {
            self.catalog.get_along(name, trail, guard).map(Entry::of)
        })
    }

    /// Has fetched what is looked at first for a name that is soon asked for or changed.
    #[inline]
    pub(crate) fn fetch(&self, name: &[u8]) {
        self.catalog.fetch(name, &epoch::pin());
    }

    /// Shows `look` the name with exactly this cookie.
    pub(crate) fn with_cookie<R>(
        &self,
        cookie: u64,
        look: impl FnOnce(&[u8], Entry) -> R,
    ) -> Option<R> {
        let guard = epoch::pin();
        let item = self.catalog.at(cookie, &guard)?;
        Some(look(item.key(), Entry::of(item)))
    }

    /// Names with cookies greater than `after`, in order.
    pub(crate) fn after<'g>(
        &'g self,
        after: u64,
        guard: &'g Guard,
    ) -> impl Iterator<Item = (&'g [u8], Entry)> {
        self.catalog
            .after(after, guard)
            .map(|item| (item.key(), Entry::of(item)))
    }

    /// The greatest cookie so far.
    pub(crate) fn last_cookie(&self) -> u64 {
        self.catalog.last_order(&epoch::pin())
    }

    /// Was it removed?
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Are all its names in memory?
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        // Acquire pairs with the release in `Names::completed`: who sees it sees the names.
        self.complete.load(Ordering::Acquire)
    }

    /// What changes of single names have counted, in a directory of many; `None` if the inode's
    /// attributes say all.
    #[inline]
    pub(crate) fn sums(&self, guard: &Guard) -> Option<Sums> {
        self.catalog.sums(guard)
    }

    /// Locks all names for changes. The attributes of `inode`, this directory's, say all from then
    /// on.
    pub(crate) fn write(&self, inode: &Object) -> Names<'_> {
        let mut writer = self.catalog.lock();
        if let Some(sums) = writer.sums()
            && (sums.stamp, sums.tally) != (0, 0)
        {
            let mut meta = inode.write();
            meta.add(&sums);
            meta.publish_with(|| writer.forget_notes());
        }
        Names {
            dir: self,
            right: Right::Whole(writer),
        }
    }

    /// Names of which none is locked yet: see [`Names::claim`].
    #[inline]
    pub(crate) fn unclaimed(&self) -> Names<'_> {
        Names {
            dir: self,
            right: Right::Claim(Claim::nothing()),
        }
    }

    /// Gives memory back, if there is much more than the names need.
    #[cold]
    pub(crate) fn tidy(&self, inode: &Object) {
        if let Right::Whole(writer) = &mut self.write(inode).right {
            writer.shrink();
        }
    }

    /// Waits until whoever changes a name now has done so.
    pub(crate) fn wait(&self) {
        drop(self.catalog.lock());
    }
}

fn refused(error: InsertError) -> Errno {
    match error {
        InsertError::Full => Errno::ENOSPC,
        _ => Errno::EUCLEAN,
    }
}

#[cfg(test)]
mod tests;
