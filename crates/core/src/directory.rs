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
//! dealt by who has locked the whole is greater than all before; and cookies of threads are read from
//! the clock, so that a name is listed behind those that were there when it was made, give or take
//! a tick. A directory that is `dead` has no names and gets none.
//!
//! *Locking.* [`Directory::write`], [`Names::claim`]: see `docs/locking.md`.

use holdfast_sync::catalog::{
    Catalog, CatalogWriter, Claim, InsertError, Item, NewName, Removed, Sums,
};
use holdfast_sync::epoch::{self, Guard};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::inode::{Object, directory_size};
use crate::numbers::{Chunk, Numbers};
use crate::store::NameRun;
use crate::trails;
use crate::types::{Errno, FileType, Ino, Result, Time};

/// Cookies 1 and 2 belong to `.` and `..`.
pub(crate) const FIRST_COOKIE: u64 = 3;
/// A thread deals a cookie of each 256, one for each 128 ns: more than it can use.
const TICK_SHIFT: u32 = 7;
const STEP_SHIFT: u32 = 8;
/// From the year 2116 on cookies only count.
const CLOCK_END: u64 = 1 << 62;

/// A store that says how many names it has is believed up to so many times those that it gave.
const TRUST: usize = 128;

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

/// The names of a directory, or some of them, locked for changes.
pub(crate) struct Names<'d> {
    dir: &'d Directory,
    right: Right<'d>,
}

enum Right<'d> {
    Whole(CatalogWriter<'d>),
    Claim(Claim<'d>),
}

/// Does the same by either right.
macro_rules! either {
    ($names:expr, $right:ident => $change:expr) => {
        match &mut $names.right {
            Right::Whole($right) => $change,
            Right::Claim($right) => $change,
        }
    };
}

impl<'d> Names<'d> {
    /// Locks one or two names for changes, which stores do not hear of: nothing puts them in order.
    /// (In place: see [`Claim`].)
    #[inline]
    pub(crate) fn claim(&mut self, name: &'d [u8], other: Option<&'d [u8]>) {
        if let Right::Claim(claim) = &mut self.right {
            claim.take(&self.dir.catalog, name, other);
        }
    }

    /// Number of names, `.` and `..` not counted. Exact if all are locked.
    pub(crate) fn len(&self) -> u32 {
        match &self.right {
            Right::Whole(writer) => writer.len(),
            Right::Claim(_) => self.dir.catalog.len(&epoch::pin()),
        }
    }

    /// Are there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the name leads to.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Entry> {
        match &self.right {
            Right::Whole(writer) => writer.get(name),
            Right::Claim(claim) => claim.get(name),
        }
        .map(Entry::of)
    }

    /// As [`get`](Self::get), for a name that is made next unless it is there.
    #[inline]
    pub(crate) fn seek(&mut self, name: &'d [u8]) -> Option<Entry> {
        match &mut self.right {
            Right::Whole(writer) => writer.seek(name),
            Right::Claim(claim) => claim.get(name),
        }
        .map(Entry::of)
    }

    /// Is there this name?
    #[inline]
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        match &self.right {
            Right::Whole(writer) => writer.get(name).is_some(),
            Right::Claim(claim) => claim.has(name),
        }
    }

    /// As [`get`](Self::get), for a name that is about to be removed.
    #[inline]
    pub(crate) fn get_to_remove(&self, name: &[u8]) -> Option<Entry> {
        let item = match &self.right {
            Right::Whole(writer) => writer.get(name),
            Right::Claim(claim) => claim.get(name),
        }?;
        let catalog = &self.dir.catalog;
        trails::with(catalog, |trail| {
            catalog.foresee(item, trail, &epoch::pin());
        });
        Some(Entry::of(item))
    }

    /// The names change now, or just did: `names` more, and `subdirs` more directories. `inode` is
    /// the directory.
    pub(crate) fn changed(&mut self, inode: &Object, names: i32, subdirs: i32, now: Time) {
        if let Right::Claim(claim) = &mut self.right
            && claim.note(now.0, i64::from(subdirs))
        {
            return;
        }
        let mut meta = inode.write();
        meta.modified(now);
        meta.size = directory_size(self.len().saturating_add_signed(names));
        meta.nlink = meta.nlink.saturating_add_signed(subdirs);
    }

    /// Is it time to [tidy](Directory::tidy) the directory, once this is dropped?
    pub(crate) fn is_wasteful(&self) -> bool {
        matches!(&self.right, Right::Claim(claim) if claim.is_wasteful())
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

    /// Takes in all names that the store holds: readers see them at once. All are locked.
    pub(crate) fn complete(&mut self, loaded: Loaded) {
        if let Right::Whole(writer) = &mut self.right {
            writer.adopt(loaded.0);
            // Fewer came than were expected.
            writer.shrink();
            self.dir.complete.store(true, Ordering::Release);
        }
    }

    /// Lets go of the names without removing them: of a directory that nobody will look into. All
    /// are locked.
    pub(crate) fn forget(&mut self) {
        if let Right::Whole(writer) = &mut self.right {
            writer.clear();
        }
    }

    /// A number for a new inode, near those of others in this directory if all its names are locked.
    pub(crate) fn next_number(&mut self, numbers: &Numbers) -> Ino {
        match &self.right {
            Right::Whole(_) => numbers.deal_from(&self.dir.chunk),
            Right::Claim(_) => numbers.deal(),
        }
    }

    /// A cookie for a new name, which is made now.
    pub(crate) fn next_cookie(&self, now: Time) -> u64 {
        let next = match &self.right {
            Right::Whole(writer) => writer.last_order() + 1,
            Right::Claim(claim) => claim.next_order(|| by_the_clock(now)),
        };
        next.max(FIRST_COOKIE)
    }

    /// Adds a name that is not there, with the [next cookie](Self::next_cookie).
    ///
    /// # Errors
    /// `ENOSPC` when the directory cannot number more names.
    pub(crate) fn insert(
        &mut self,
        name: &[u8],
        cookie: u64,
        ino: Ino,
        kind: FileType,
    ) -> Result<()> {
        either!(self, right => right.insert(name, cookie, ino.0, kind.dirent_type()))
            .map_err(refused)
    }

    /// Removes a name; returns what it led to.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Entry> {
        let gone: Removed = either!(self, right => right.remove(name))?;
        Some(Entry::new(gone.order, gone.value, gone.tag))
    }

    /// Lets a name lead to another inode; cookie and position stay.
    pub(crate) fn replace(&mut self, name: &[u8], ino: Ino, kind: FileType) {
        either!(self, right => right.replace(name, ino.0, kind.dirent_type()));
    }

    /// Gives an entry another name that is not there; position and cookie stay, so that a listing
    /// under way never meets the file twice. Returns the cookie, 0 without such an entry.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> u64 {
        either!(self, right => right.rename(from, to)).unwrap_or(0)
    }

    /// Removes `from` and lets `to` lead where it did, at once for readers. Returns the cookies of
    /// both, if both are there.
    pub(crate) fn rename_over(&mut self, from: &[u8], to: &[u8]) -> Option<(u64, u64)> {
        let (moved, replaced) = either!(self, right => right.rename_over(from, to))?;
        Some((moved.order, replaced.order))
    }

    /// Lets two names lead where the other did, at once for readers.
    pub(crate) fn exchange(&mut self, one: &[u8], other: &[u8]) {
        either!(self, right => right.exchange(one, other));
    }
}

/// Names on their way from the store into a directory.
pub(crate) struct Loaded(Catalog);

impl Loaded {
    pub(crate) fn new() -> Self {
        Self(Catalog::new())
    }

    /// Adds names; cookies must arrive in ascending order. `expected`: how many there will be in all,
    /// as the store says; room is made for as many of them as those make likely that came.
    ///
    /// # Errors
    /// `EUCLEAN` if they do not, for a name that is there twice or is none, and for a number
    /// that no inode has; `ENOSPC` when a directory cannot hold more names.
    pub(crate) fn add(&self, run: &NameRun, expected: u64) -> Result<()> {
        let mut names = self.0.lock();
        let likely = (names.len() as usize + run.len()).saturating_mul(TRUST);
        names.reserve(likely.min(usize::try_from(expected).unwrap_or(likely)));
        let new = run.iter().map(|entry| NewName {
            key: entry.name,
            order: entry.cookie,
            value: entry.ino.0,
            tag: entry.kind.dirent_type(),
        });
        names.insert_all(new).map_err(refused)
    }

    /// New names get this cookie or greater ones.
    ///
    /// # Errors
    /// `EUCLEAN` if no cookie can be that great.
    pub(crate) fn go_on_at(&self, next_cookie: u64) -> Result<()> {
        let mut names = self.0.lock();
        if next_cookie > names.last_order() + 1 {
            // A catalog remembers the order of a name that came and went; no name is like this one.
            let (name, kind) = (b".", FileType::Directory.dirent_type());
            names
                .insert(name, next_cookie - 1, Ino::ROOT.0, kind)
                .map_err(refused)?;
            names.remove(name);
        }
        Ok(())
    }

    /// Number of names so far.
    pub(crate) fn len(&self) -> u32 {
        self.0.lock().len()
    }
}

fn refused(error: InsertError) -> Errno {
    match error {
        InsertError::Full => Errno::ENOSPC,
        _ => Errno::EUCLEAN,
    }
}

/// The least cookie that a thread deals at this time.
fn by_the_clock(now: Time) -> u64 {
    let now = u64::try_from(now.0).unwrap_or(0);
    ((now >> TICK_SHIFT) << STEP_SHIFT).min(CLOCK_END)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::inode::{Content, DirectoryBody, Extension, Meta};
    use std::sync::atomic::AtomicU64;

    fn name(number: u16) -> Vec<u8> {
        format!("name-{number}").into_bytes()
    }

    fn inode(complete: bool) -> Object {
        let meta = Meta::new(0o755, 0, 0, Time(5));
        let body = DirectoryBody {
            parent: AtomicU64::new(1),
            names: Directory::empty(complete),
        };
        let content = Content::Directory(body);
        let extension = Extension::of(content, None);
        Object::new(1, FileType::Directory, &meta, extension, true)
    }

    fn load(loaded: &Loaded, name: &[u8], cookie: u64, ino: u64) -> Result<()> {
        let mut run = NameRun::default();
        run.push(name, cookie, Ino(ino), FileType::Fifo);
        loaded.add(&run, u64::MAX)
    }

    fn add(names: &mut Names<'_>, name: &[u8], ino: u64) -> u64 {
        let cookie = names.next_cookie(clock::now());
        names
            .insert(name, cookie, Ino(ino), FileType::Fifo)
            .unwrap();
        cookie
    }

    #[test]
    fn what_claims_count_is_seen_and_kept_when_the_whole_is_locked() {
        let inode = inode(true);
        let dir = &inode.directory().unwrap().names;
        let mut last = 0;
        for number in 0..100 {
            let name = name(number);
            let mut names = dir.unclaimed();
            names.claim(&name, None);
            let cookie = add(&mut names, &name, 9);
            assert!(cookie > last && cookie < 1 << 63);
            last = cookie;
            names.changed(&inode, 0, 1, Time(1000 + i64::from(number)));
        }
        let all = |meta: Meta| (meta.nlink, meta.size, meta.mtime, meta.ctime);
        let whole = (101, directory_size(100), Time(1099), Time(1099));
        assert_eq!(all(inode.stat()), whole);
        assert_ne!(all(inode.meta()), whole, "it has to ask lanes for it");
        drop(dir.write(&inode));
        assert_eq!(all(inode.stat()), whole);
        assert_eq!(all(inode.meta()), whole);
        for number in 0..99 {
            let name = name(number);
            let mut names = dir.unclaimed();
            names.claim(&name, None);
            assert!(names.remove(&name).is_some());
            names.changed(&inode, 0, -1, Time(2000));
            let wasteful = names.is_wasteful();
            drop(names);
            if wasteful {
                dir.tidy(&inode);
            }
        }
        let left = (2, directory_size(1), Time(2000), Time(2000));
        assert_eq!(all(inode.stat()), left);
        assert!(dir.sums(&epoch::pin()).is_none(), "memory was given back");
        assert_eq!(dir.last_cookie(), last);
        assert!(dir.write(&inode).next_cookie(clock::now()) > last);
    }

    #[test]
    fn cookies_grow_and_survive_the_closing_of_gaps() {
        let inode = inode(true);
        let dir = &inode.directory().unwrap().names;
        let mut names = dir.write(&inode);
        for number in 0..1000 {
            add(&mut names, &name(number), u64::from(number) + 2);
        }
        let kept = names.get(&name(999)).unwrap();
        for number in 0..999 {
            assert!(names.remove(&name(number)).is_some());
        }
        assert_eq!(names.get(&name(999)), Some(kept));
        let seen = dir.with_cookie(kept.cookie, |bytes, entry| (bytes.to_vec(), entry.ino));
        assert_eq!(seen, Some((name(999), Ino(1001))));
        let fresh = add(&mut names, b"fresh", 5);
        assert!(fresh > kept.cookie);
        names.remove(&name(999));
        names.remove(b"fresh");
        assert!(names.is_empty());
        assert!(add(&mut names, b"again", 6) > fresh);
        assert_eq!(dir.find(b"again").unwrap().kind, FileType::Fifo);
    }

    #[test]
    fn what_no_store_may_say_is_corruption() {
        let loaded = Loaded::new();
        load(&loaded, b"a", 10, 9).unwrap();
        let again = |name: &[u8], cookie, ino| load(&loaded, name, cookie, ino);
        assert_eq!(again(b"b", 10, 9), Err(Errno::EUCLEAN), "order");
        assert_eq!(again(b"a", 11, 9), Err(Errno::EUCLEAN), "twice");
        assert_eq!(again(b"", 12, 9), Err(Errno::EUCLEAN), "no name");
        assert_eq!(again(b"c", 13, u64::MAX), Err(Errno::EUCLEAN), "no number");
    }

    #[test]
    fn a_directory_is_searched_only_once_all_names_are_there() {
        let inode = inode(false);
        let dir = &inode.directory().unwrap().names;
        let loaded = Loaded::new();
        load(&loaded, b"a", 10, 9).unwrap();
        assert!(!dir.is_complete());
        dir.write(&inode).complete(loaded);
        assert!(dir.is_complete() && dir.find(b"a").is_some());
        assert_eq!(dir.last_cookie(), 10);
    }
}
