//! The names of one directory.
//!
//! Names are kept in the order of their cookies, which only grow: a listing that stopped at a
//! cookie goes on behind it, whatever was added or removed meanwhile. Lookups and listings take
//! no lock and write nothing; changes take turns. A rename within the directory happens at once
//! for readers: they find the old name or the new one, never both and never neither.
//!
//! *Invariants.* Cookies ascend strictly. A directory that is `dead` has no names and gets none.
//!
//! *Locking.* [`Directory::write`]: see `docs/locking.md`.

use holdfast_sync::catalog::{Catalog, CatalogWriter, InsertError, Item};
use holdfast_sync::epoch::{self, Guard};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::types::{Errno, FileType, Ino, Result};

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
            kind: FileType::from_mode(u32::from(tag) << 12).unwrap_or(FileType::Regular),
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
}

impl Directory {
    /// A directory without names; `complete`: the store has none either.
    pub(crate) fn empty(complete: bool) -> Self {
        Self {
            catalog: Catalog::new(),
            dead: AtomicBool::new(false),
            complete: AtomicBool::new(complete),
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
        self.catalog.get(name, guard).map(Entry::of)
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

    /// Locks the names for changes.
    pub(crate) fn write(&self) -> Names<'_> {
        Names {
            dir: self,
            writer: self.catalog.lock(),
        }
    }
}

/// The names of a directory, locked for changes.
pub(crate) struct Names<'d> {
    dir: &'d Directory,
    writer: CatalogWriter<'d>,
}

impl Names<'_> {
    /// Number of names, `.` and `..` not counted.
    pub(crate) fn len(&self) -> u32 {
        self.writer.len()
    }

    /// Are there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the name leads to.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Entry> {
        self.writer.get(name).map(Entry::of)
    }

    /// Was the directory removed?
    pub(crate) fn is_dead(&self) -> bool {
        self.dir.is_dead()
    }

    /// The directory, which is empty, was removed.
    pub(crate) fn bury(&mut self) {
        debug_assert!(self.is_empty());
        self.dir.dead.store(true, Ordering::Release);
    }

    /// Takes in all names that the store holds: readers see them at once.
    pub(crate) fn complete(&mut self, loaded: Loaded) {
        self.writer.adopt(loaded.0);
        self.dir.complete.store(true, Ordering::Release);
    }

    /// Lets go of the names without removing them: of a directory that nobody will look into.
    pub(crate) fn forget(&mut self) {
        self.writer.clear();
    }

    /// The cookie that the next new name gets.
    pub(crate) fn next_cookie(&self) -> u64 {
        (self.writer.last_order() + 1).max(FIRST_COOKIE)
    }

    /// Adds a name that is not there; returns its cookie.
    ///
    /// # Errors
    /// `ENOSPC` when the directory cannot number more names.
    pub(crate) fn insert(&mut self, name: &[u8], ino: Ino, kind: FileType) -> Result<u64> {
        let cookie = self.next_cookie();
        insert(&mut self.writer, name, cookie, ino, kind)?;
        Ok(cookie)
    }

    /// Removes a name; returns what it led to.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        let gone = self.writer.remove(name)?;
        Some(Entry::new(gone.order, gone.value, gone.tag))
    }

    /// Lets a name lead to another inode; cookie and position stay.
    pub(crate) fn replace(&mut self, name: &[u8], ino: Ino, kind: FileType) {
        self.writer.replace(name, ino.0, kind.dirent_type());
    }

    /// Gives an entry another name that is not there; position and cookie stay, so that a listing
    /// under way never meets the file twice. Returns the cookie, 0 without such an entry.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> u64 {
        self.writer.rename(from, to).unwrap_or(0)
    }

    /// Removes `from` and lets `to` lead where it did, at once for readers. Returns the cookies of
    /// both, if both are there.
    pub(crate) fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(u64, u64)> {
        let (moved, replaced) = self.writer.rename_over(from, to)?;
        Some((moved.order, replaced.order))
    }

    /// Lets two names lead where the other did, at once for readers.
    pub(crate) fn exchange(&mut self, one: &[u8], other: &[u8]) {
        self.writer.exchange(one, other);
    }
}

/// Names on their way from the store into a directory.
pub(crate) struct Loaded(Catalog);

impl Loaded {
    pub(crate) fn new() -> Self {
        Self(Catalog::new())
    }

    /// Adds a name; cookies must arrive in ascending order.
    ///
    /// # Errors
    /// `EUCLEAN` if they do not, for a name that is there twice or is none, and for a number
    /// that no inode has; `ENOSPC` when a directory cannot hold more names.
    pub(crate) fn add(&self, name: &[u8], cookie: u64, ino: Ino, kind: FileType) -> Result<()> {
        insert(&mut self.0.lock(), name, cookie, ino, kind)
    }

    /// Number of names so far.
    pub(crate) fn len(&self) -> u32 {
        self.0.lock().len()
    }
}

fn insert(
    writer: &mut CatalogWriter<'_>,
    name: &[u8],
    cookie: u64,
    ino: Ino,
    kind: FileType,
) -> Result<()> {
    writer
        .insert(name, cookie, ino.0, kind.dirent_type())
        .map_err(|error| match error {
            InsertError::Full => Errno::ENOSPC,
            _ => Errno::EUCLEAN,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u16) -> Vec<u8> {
        format!("name-{number}").into_bytes()
    }

    #[test]
    fn cookies_grow_and_survive_the_closing_of_gaps() {
        let dir = Directory::empty(true);
        let mut names = dir.write();
        for number in 0..1000 {
            let ino = Ino(u64::from(number) + 2);
            names.insert(&name(number), ino, FileType::Regular).unwrap();
        }
        let kept = names.get(&name(999)).unwrap();
        for number in 0..999 {
            assert!(names.remove(&name(number)).is_some());
        }
        assert_eq!(names.get(&name(999)), Some(kept));
        let seen = dir.with_cookie(kept.cookie, |bytes, entry| (bytes.to_vec(), entry.ino));
        assert_eq!(seen, Some((name(999), Ino(1001))));
        let fresh = names.insert(b"fresh", Ino(5), FileType::Regular).unwrap();
        assert!(fresh > kept.cookie);
        names.remove(&name(999));
        names.remove(b"fresh");
        assert!(names.is_empty());
        assert!(names.insert(b"again", Ino(6), FileType::Fifo).unwrap() > fresh);
        assert_eq!(dir.find(b"again").unwrap().kind, FileType::Fifo);
    }

    #[test]
    fn what_no_store_may_say_is_corruption() {
        let loaded = Loaded::new();
        loaded.add(b"a", 10, Ino(9), FileType::Fifo).unwrap();
        let again = |name: &[u8], cookie, ino| loaded.add(name, cookie, Ino(ino), FileType::Fifo);
        assert_eq!(again(b"b", 10, 9), Err(Errno::EUCLEAN), "order");
        assert_eq!(again(b"a", 11, 9), Err(Errno::EUCLEAN), "twice");
        assert_eq!(again(b"", 12, 9), Err(Errno::EUCLEAN), "no name");
        assert_eq!(again(b"c", 13, u64::MAX), Err(Errno::EUCLEAN), "no number");
    }

    #[test]
    fn a_directory_is_searched_only_once_all_names_are_there() {
        let dir = Directory::empty(false);
        let loaded = Loaded::new();
        loaded.add(b"a", 10, Ino(9), FileType::Fifo).unwrap();
        assert!(!dir.is_complete());
        dir.write().complete(loaded);
        assert!(dir.is_complete() && dir.find(b"a").is_some());
        assert_eq!(dir.last_cookie(), 10);
    }
}
