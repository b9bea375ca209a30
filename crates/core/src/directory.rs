//! The names of one directory.
//!
//! Names are kept in the order of their cookies: a listing that stopped at a cookie goes on behind
//! it, whatever was added or removed meanwhile. Lookups and listings take no lock and write nothing.
//! A rename within the directory happens at once for readers: they find the old name or the new one,
//! never both and never neither.
//!
//! Changes of a directory take turns: each locks its names ([`Directory::write`]).
//!
//! *Invariants.* The cookie of a new name is one greater than the greatest before. So a name is listed
//! behind those that were there when it was made. A directory that is `dead` has no names and gets none.
//!
//! Over a store a directory need not be in memory as a whole: see [`Place`]. Then the [names that are known](Partial) are looked
//! at first, and the store is asked for others.
//!
//! *Locking.* [`Directory::write`]: see `docs/locking.md`.

mod changes;
mod filter;
mod loaded;
mod names;
mod partial;
mod place;
mod state;

use holdfast_dirindex::{Catalog, InsertError, Item};
use holdfast_sync::epoch::{self, Guard};
use once_cell::race::OnceBox;

use crate::lookup_hints;
use crate::numbers::Chunk;
use crate::types::{Errno, FileType, Ino};

pub(crate) use loaded::Loaded;
pub(crate) use names::Names;
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
    /// Numbers for what is made here, over a store. They are dealt while the names are locked.
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
        let found = lookup_hints::with(&self.catalog, |lookup_hint| {
            self.catalog
                .get_along(name, lookup_hint, guard)
                .map(Entry::of)
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
        lookup_hints::with(&self.catalog, |lookup_hint| {
            self.catalog
                .get_along(name, lookup_hint, &guard)
                .map(Entry::of)
        })
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

    /// Locks the names for changes.
    #[inline]
    pub(crate) fn write(&self) -> Names<'_> {
        let writer = self.catalog.lock();
        let is_partial = self.place() == Place::Partial;
        Names {
            dir: self,
            writer,
            partial: self.partial.get().filter(|_| is_partial),
        }
    }

    /// Waits for the end of the change that is under way.
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
