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
//! Over a store a directory need not be in memory as a whole: see [`Place`]. Then the [names that are known](Partial) are looked
//! at first, and the store is asked for others.
//!
//! *Locking.* [`Directory::write`], [`Names::claim`]: see `docs/locking.md`.

mod changes;
mod filter;
mod loaded;
mod names;
mod partial;
mod place;
mod state;

use holdfast_sync::catalog::{Catalog, Claim, InsertError, Item, Sums};
use holdfast_sync::epoch::{self, Guard};
use once_cell::race::OnceBox;

use crate::inode::Object;
use crate::numbers::Chunk;
use crate::trails;
use crate::types::{Errno, FileType, Ino};

pub(crate) use loaded::Loaded;
pub(crate) use names::Names;
use names::Right;
pub(crate) use partial::Known;
use partial::Partial;
use state::State;
pub(crate) use state::{Place, Seen};

/// Cookies 1 and 2 belong to `.` and `..`.
pub(crate) const FIRST_COOKIE: u64 = 3;
/// Cookies are below this one.
pub(crate) const COOKIE_END: u64 = 1 << 63;

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
    /// All names, if they are here as a whole; else none.
    catalog: Catalog,
    /// Where the names are, and whether it was removed: nothing can be created in it any more.
    state: State,
    /// Unused: it leaves room for what tells a directory from other content.
    _niche: Niche,
    /// Numbers for what is made here, over a store. Who has locked all names deals them.
    chunk: Chunk,
    /// What is known of it when its names are not here as a whole; made when that is first so.
    partial: OnceBox<Partial>,
}

/// Of one value.
#[repr(u8)]
enum Niche {
    Free,
}

const _: () = assert!(size_of::<Directory>() == 40, "a directory grew");

impl Directory {
    /// A directory without names; `complete`: the store has none either.
    pub(crate) fn empty(complete: bool) -> Self {
        Self {
            catalog: Catalog::new(),
            state: State::new(match complete {
                true => Place::Whole,
                false => Place::Unloaded,
            }),
            _niche: Niche::Free,
            chunk: Chunk::default(),
            partial: OnceBox::new(),
        }
    }

    /// What is known of a name.
    #[inline]
    pub(crate) fn look(&self, name: &[u8]) -> Known {
        self.look_in(name, &epoch::pin())
    }

    /// As [`Directory::look`], under a guard that is there already.
    #[inline]
    pub(crate) fn look_in(&self, name: &[u8], guard: &Guard) -> Known {
        let seen = self.state.see();
        if seen.place() != Place::Whole {
            return self.look_at_known(name, seen);
        }
        let found = trails::with(&self.catalog, |trail| {
            self.catalog.get_along(name, trail, guard).map(Entry::of)
        });
        match found {
            Some(entry) => Known::Found(entry),
            None if self.state.is_still(seen) => Known::Absent,
            None => Known::Unknown,
        }
    }

    #[cold]
    fn look_at_known(&self, name: &[u8], seen: Seen) -> Known {
        match self.partial.get() {
            Some(partial) if seen.place() == Place::Partial => partial.lock().look(name),
            _ => Known::Unknown,
        }
    }

    /// What the name leads to, if that is known without asking a store.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<Entry> {
        match self.look(name) {
            Known::Found(entry) => Some(entry),
            Known::Absent | Known::Unknown => None,
        }
    }

    /// What the name led to when the store was asked last, whatever the [place](Place) of the names is.
    pub(crate) fn find_in_catalog(&self, name: &[u8]) -> Option<Entry> {
        let guard = epoch::pin();
        trails::with(&self.catalog, |trail| {
            self.catalog.get_along(name, trail, &guard).map(Entry::of)
        })
    }

    /// Has fetched what is looked at first for a name that is soon asked for or changed.
    #[inline]
    pub(crate) fn fetch(&self, name: &[u8]) {
        self.catalog.fetch(name, &epoch::pin());
    }

    /// Shows `look` the name with exactly this cookie, if it is in the catalog.
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

    /// The greatest cookie so far. The names are not [unloaded](Place::Unloaded).
    pub(crate) fn last_cookie(&self) -> u64 {
        loop {
            let seen = self.state.see();
            let last = match self.partial.get() {
                Some(partial) if seen.place() == Place::Partial => partial.lock().next_cookie - 1,
                _ => self.catalog.last_order(&epoch::pin()),
            };
            if self.state.is_still(seen) {
                return last;
            }
        }
    }

    /// Was it removed?
    pub(crate) fn is_dead(&self) -> bool {
        self.state.is_dead()
    }

    /// Where its names are at the moment.
    #[inline]
    pub(crate) fn see(&self) -> Seen {
        self.state.see()
    }

    /// Where its names are at the moment.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        self.state.see().place()
    }

    /// Are its names where they were?
    pub(crate) fn is_still(&self, seen: Seen) -> bool {
        self.state.is_still(seen)
    }

    /// Number of names in the catalog.
    pub(crate) fn in_catalog(&self) -> u32 {
        self.catalog.len(&epoch::pin())
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
        let right = match self.partial.get() {
            Some(partial) if self.place() == Place::Partial => Right::Partial(writer, partial),
            _ => Right::Whole(writer),
        };
        Names { dir: self, right }
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
