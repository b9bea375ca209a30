//! The names of one directory, for readers: none of them takes a lock.

use crate::directory::entry::Entry;
use holdfast_dirindex::DirIndex;
use holdfast_sync::epoch::{self, Guard};
use once_cell::race::OnceBox;

use crate::directory::{Known, Residency, Seen};
use crate::numbers::Chunk;

use super::partial::Partial;
use super::state::State;

/// The names of one directory.
pub(crate) struct Directory {
    /// All names if they are in memory, else empty.
    pub(super) index: DirIndex,
    /// Where the names are, and whether the directory was removed, so that nothing can be created
    /// in it.
    pub(super) state: State,
    /// Never read: gives `Content` a niche for its discriminant.
    _niche: Niche,
    /// Inode numbers for new inodes in this directory, over a store. Used with the names locked.
    pub(super) chunk: Chunk,
    /// The known names while not all are in memory; created at first need.
    pub(super) partial: OnceBox<Partial>,
}

/// A type with one value of 256.
#[repr(u8)]
enum Niche {
    Free,
}

const _: () = assert!(size_of::<Directory>() == 40, "a directory grew");

impl Directory {
    /// A directory without names in memory. `complete`: the store has none either.
    pub(crate) fn empty(complete: bool) -> Self {
        Self {
            index: DirIndex::new(),
            state: State::new(match complete {
                true => Residency::Whole,
                false => Residency::Unloaded,
            }),
            _niche: Niche::Free,
            chunk: Chunk::default(),
            partial: OnceBox::new(),
        }
    }

    /// Looks up a name without asking the store.
    #[inline]
    pub(crate) fn look(&self, name: &[u8]) -> Known {
        self.look_in(name, &epoch::pin())
    }

    /// As [`Directory::look`], under a guard of the caller.
    #[inline]
    pub(crate) fn look_in(&self, name: &[u8], guard: &Guard) -> Known {
        let seen = self.state.see();
        if seen.place() != Residency::Whole {
            return self.look_at_known(name, seen);
        }
        let found = self.index.get(name, guard).map(Entry::of);
        match found {
            Some(entry) => Known::Found(entry),
            None if self.state.is_still(seen) => Known::Negative,
            None => Known::Unknown,
        }
    }

    #[cold]
    fn look_at_known(&self, name: &[u8], seen: Seen) -> Known {
        match self.partial.get() {
            Some(partial) if seen.place() == Residency::Partial => partial.lock().look(name),
            _ => Known::Unknown,
        }
    }

    /// The entry of a name, if it is known without asking the store.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<Entry> {
        match self.look(name) {
            Known::Found(entry) => Some(entry),
            Known::Negative | Known::Unknown => None,
        }
    }

    /// The entry of a name in the catalog, whatever the [place](Residency) of the names: possibly
    /// stale.
    pub(crate) fn find_cached(&self, name: &[u8]) -> Option<Entry> {
        self.index.get(name, &epoch::pin()).map(Entry::of)
    }

    /// Calls `look` with the name that has exactly this cookie, if it is in the catalog.
    pub(crate) fn with_cookie<R>(
        &self,
        cookie: u64,
        look: impl FnOnce(&[u8], Entry) -> R,
    ) -> Option<R> {
        let guard = epoch::pin();
        let item = self.index.at(cookie, &guard)?;
        Some(look(item.key(), Entry::of(item)))
    }

    /// Names with cookies greater than `after`, in order.
    pub(crate) fn after<'g>(
        &'g self,
        after: u64,
        guard: &'g Guard,
    ) -> impl Iterator<Item = (&'g [u8], Entry)> {
        self.index
            .after(after, guard)
            .map(|item| (item.key(), Entry::of(item)))
    }

    /// The greatest cookie given so far. The names are not [unloaded](Residency::Unloaded).
    pub(crate) fn last_cookie(&self) -> u64 {
        loop {
            let seen = self.state.see();
            let last = match self.partial.get() {
                Some(partial) if seen.place() == Residency::Partial => {
                    partial.lock().next_cookie - 1
                }
                _ => self.index.last_order(&epoch::pin()),
            };
            if self.state.is_still(seen) {
                return last;
            }
        }
    }

    /// Was the directory removed?
    pub(crate) fn is_dead(&self) -> bool {
        self.state.is_dead()
    }

    /// The place of the names, with its generation.
    #[inline]
    pub(crate) fn see(&self) -> Seen {
        self.state.see()
    }

    /// The place of the names.
    #[inline]
    pub(crate) fn place(&self) -> Residency {
        self.state.see().place()
    }

    /// Is the place unchanged since `seen`?
    pub(crate) fn is_still(&self, seen: Seen) -> bool {
        self.state.is_still(seen)
    }

    /// Number of names in the catalog.
    pub(crate) fn cached(&self) -> u32 {
        self.index.len(&epoch::pin())
    }

    /// Waits for the end of a change in progress.
    pub(crate) fn wait(&self) {
        drop(self.index.lock());
    }
}
