//! Names of directories: of small ones all are loaded when one is asked for, of large ones as many as are.
//!
//! A directory begins [partial](Place::Partial) if it has more names than [`Options::whole_directory`](crate::Options). It
//! is loaded as a whole when the store was asked for a sixteenth of them, one by one or in runs: by then that has cost about as much. It
//! may not take more than an eighth of the limit; when it outgrows that, or memory gets short, it is partial again.
//!
//! Of stores that others may change (`shared/`) directories are read as a whole, or asked for one name. Those cannot be changed here.
//!
//! *Locking.* All changes of what is known are made under the lock of the directory's names. A store is asked for a name
//! without it, and believed if no change of the directory began meanwhile; else, also if it failed, it is asked once more,
//! under the lock.

use holdfast_cache::reclaim::Load;

use crate::directory::{COOKIE_END, Entry, FIRST_COOKIE, Known, Loaded, Names, Place};
use crate::file_system::Core;
use crate::inode::{DirectoryBody, Inode, Numbered as _, directory_names, directory_size};
use crate::inodes::{InodeWalk, Take, Visit};
use crate::reclaim::{Directories, NAME_BYTES};
use crate::store::{InodeRecord, NameRun};
use crate::types::{Errno, Ino, Result};

/// Names loaded in one run.
const RUN: usize = 4096;
/// Names that a filter gets with each name that is asked for in vain.
const FILTER_RUN: usize = 512;
/// A directory as a whole may take this part of the limit.
const WHOLE_PART: u64 = 8;
/// What is known of a partial directory may take this part of the limit.
const KNOWN_PART: u64 = 32;
/// A directory is loaded as a whole when the store was asked for this part of its names.
const ASKED_PART: u64 = 16;

impl Core {
    /// Names that a directory may have to be in memory as a whole.
    fn whole_max(&self) -> u64 {
        match u64::from(self.policy.whole_directory()) {
            0 => 0,
            least => least.max(self.reclaim.limit() / (WHOLE_PART * NAME_BYTES)),
        }
    }

    /// Names that may be known of a partial directory.
    pub(super) fn known_max(&self) -> usize {
        match self.policy.whole_directory() {
            // As few as can be: all that can happen to a name shall.
            0 => 0,
            _ => usize::try_from(self.reclaim.limit() / (KNOWN_PART * NAME_BYTES)).unwrap_or(0),
        }
    }

    /// Makes sure that something is known of a directory's names: all of them, or how many there are.
    ///
    /// # Errors
    /// What the store answers.
    #[inline]
    pub(crate) fn load_names(&self, dir: &Inode, body: &DirectoryBody) -> Result<()> {
        match body.names.place() {
            Place::Whole | Place::Partial => Ok(()),
            Place::Unloaded | Place::Dated => self.load_now(dir, body),
        }
    }

    #[cold]
    fn load_now(&self, dir: &Inode, body: &DirectoryBody) -> Result<()> {
        match self.coherence.is_some() {
            true => self.names_as_they_are(dir, body),
            false => self.load_locked(dir, &mut body.names.write()),
        }
    }

    #[cold]
    fn load_locked(&self, dir: &Inode, names: &mut Names<'_>) -> Result<()> {
        if names.place() != Place::Unloaded {
            return Ok(());
        }
        if self.coherence.is_some() {
            return Err(Errno::EROFS);
        }
        let expected = directory_names(dir.size());
        let least = self.policy.whole_directory();
        if expected <= u64::from(least) && least > 0 {
            return self.load_whole(dir, names);
        }
        let next_cookie = self.end_of(dir.ino())?;
        let expected = u32::try_from(expected).map_err(|_| Errno::EUCLEAN)?;
        names.become_partial(expected, next_cookie);
        Ok(())
    }

    /// Loads all names of a directory, which are locked.
    fn load_whole(&self, dir: &Inode, names: &mut Names<'_>) -> Result<()> {
        let mut loaded = Loaded::new();
        let expected = directory_names(dir.size());
        let mut run = NameRun::default();
        let mut after = 0;
        loop {
            run.clear();
            self.store.read_names(dir.ino(), after, RUN, &mut run)?;
            let Some(last) = run.last_cookie() else { break };
            after = last;
            loaded.add(&run, expected)?;
        }
        let mut next_cookie = self.store.end_cookie(dir.ino())?;
        if names.place() == Place::Partial {
            next_cookie = next_cookie.max(names.next_cookie());
        }
        loaded.go_on_at(next_cookie)?;
        self.names.add(i64::from(loaded.len()));
        self.reclaim
            .name_sizes
            .came(loaded.len() as usize, loaded.bytes());
        dir.write().size = directory_size(loaded.len());
        names.complete(loaded);
        self.names.add(names.recount());
        Ok(())
    }

    /// A name came to a directory that is locked.
    pub(crate) fn count_name(&self, names: &Names<'_>, name: &[u8]) {
        self.names.add(names.counts(1));
        self.reclaim.name_sizes.came(1, name.len());
    }

    /// Above all cookies that names of a directory have or had, and fit for a new name.
    fn end_of(&self, dir: Ino) -> Result<u64> {
        match self.store.end_cookie(dir)? {
            end if end <= COOKIE_END => Ok(end.max(FIRST_COOKIE)),
            _ => Err(Errno::EUCLEAN),
        }
    }

    /// The names of a directory are not kept as a whole any longer. They are locked.
    pub(crate) fn make_partial(&self, names: &mut Names<'_>) {
        let there = names.len();
        let next_cookie = names.next_cookie();
        names.become_partial(there, next_cookie);
        self.names.add(names.recount() - i64::from(there));
    }

    /// Is there no name in a directory? Its names are locked.
    ///
    /// # Errors
    /// What the store answers.
    pub(crate) fn is_empty(&self, dir: &Inode, names: &mut Names<'_>) -> Result<bool> {
        if !self.pinned {
            self.load_locked(dir, names)?;
        }
        if names.place() != Place::Partial {
            return Ok(names.is_empty());
        }
        let mut run = NameRun::default();
        self.store.read_names(dir.ino(), 0, 1, &mut run)?;
        Ok(run.is_empty())
    }

    /// What a name leads to.
    ///
    /// # Errors
    /// What the store answers.
    #[inline]
    pub(crate) fn find_name(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        name: &[u8],
    ) -> Result<Option<Entry>> {
        match body.names.look(name) {
            Known::Found(entry) => Ok(Some(entry)),
            Known::Absent => Ok(None),
            Known::Unknown => self.ask_for(dir, body, name),
        }
    }

    #[cold]
    fn ask_for(&self, dir: &Inode, body: &DirectoryBody, name: &[u8]) -> Result<Option<Entry>> {
        if self.coherence.is_some() {
            self.names_as_they_are(dir, body)?;
            return Ok(body.names.find_in_catalog(name));
        }
        let changes = {
            let mut names = body.names.write();
            self.load_locked(dir, &mut names)?;
            match names.hold(name) {
                Known::Found(entry) => return Ok(Some(entry)),
                Known::Absent => return Ok(None),
                Known::Unknown => names.changes(),
            }
        };
        let evictions = self.evictions.snapshot();
        let asked = self.ask_store(dir.ino(), name);
        let mut names = body.names.write();
        if names.place() == Place::Partial && names.changes() == changes {
            let told = asked?;
            let entry = told.as_ref().map(|(entry, _)| *entry);
            self.learn(dir, &mut names, name, entry)?;
            drop(names);
            if let Some((entry, Some(record))) = told {
                self.load_told(dir, body, name, entry, (&record, &evictions));
            }
            return Ok(entry);
        }
        self.hold_name(dir, &mut names, name)?;
        Ok(names.get(name))
    }

    /// What the store knows of a name, and of the inode that it leads to.
    fn ask_store(&self, dir: Ino, name: &[u8]) -> Result<Option<(Entry, Option<InodeRecord>)>> {
        let mut found = Vec::with_capacity(1);
        self.store.look_up(dir, &[name], &mut found)?;
        let Some((entry, record)) = found.pop().ok_or(Errno::EUCLEAN)? else {
            return Ok(None);
        };
        let is_other = |record: &InodeRecord| record.ino != entry.ino;
        if !(1..COOKIE_END).contains(&entry.cookie) || record.as_ref().is_some_and(is_other) {
            return Err(Errno::EUCLEAN);
        }
        let entry = Entry {
            cookie: entry.cookie,
            ino: entry.ino,
            kind: entry.kind,
        };
        Ok(Some((entry, record)))
    }

    /// The store says so of a name of a partial directory. Its names are locked.
    fn learn(
        &self,
        dir: &Inode,
        names: &mut Names<'_>,
        name: &[u8],
        entry: Option<Entry>,
    ) -> Result<()> {
        names.learn(name, entry, self.known_max());
        self.reclaim.name_sizes.came(1, name.len());
        if entry.is_none()
            && let Some(after) = names.filter_misses()
        {
            // Nobody waits for all of them.
            let mut run = NameRun::default();
            self.store
                .read_names(dir.ino(), after, FILTER_RUN, &mut run)?;
            names.fill_filter(&run);
        }
        self.names.add(names.recount());
        self.load_whole_if_worth_it(dir, names)
    }

    /// Loads all names of a partial directory if the store was asked for enough of them. They are locked.
    fn load_whole_if_worth_it(&self, dir: &Inode, names: &mut Names<'_>) -> Result<()> {
        let there = u64::from(names.len());
        match names.asked() >= there / ASKED_PART && self.fits_as_whole(there) {
            true => self.load_whole(dir, names),
            false => Ok(()),
        }
    }

    /// Reads a run of names of a partial directory from the store, those behind a cookie, and makes them known if no change of the
    /// directory began meanwhile.
    ///
    /// # Errors
    /// What the store answers; `EUCLEAN` if the names do not ascend.
    pub(crate) fn learn_run(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        after: u64,
        max: usize,
        run: &mut NameRun,
    ) -> Result<()> {
        let changes = {
            let names = body.names.write();
            (names.place() == Place::Partial).then(|| names.changes())
        };
        let had = run.len();
        self.store.read_names(dir.ino(), after, max, run)?;
        let behind = || run.iter().skip(had);
        let ascend = behind().is_sorted_by(|one, other| one.cookie < other.cookie);
        if !ascend || behind().any(|entry| entry.cookie <= after) {
            return Err(Errno::EUCLEAN);
        }
        let room = self.known_max();
        if changes.is_some() && room > 0 {
            let mut names = body.names.write();
            if names.place() == Place::Partial && Some(names.changes()) == changes {
                names.learn_all(run, room);
                self.reclaim.name_sizes.came(run.len(), run.name_bytes());
                self.names.add(names.recount());
                self.load_whole_if_worth_it(dir, &mut names)?;
            }
        }
        Ok(())
    }

    /// Has all names of a directory come into memory, if it may be there as a whole. Is it?
    ///
    /// # Errors
    /// What the store answers.
    pub(super) fn make_whole(&self, dir: &Inode, body: &DirectoryBody) -> Result<bool> {
        if self.coherence.is_some() {
            self.names_as_they_are(dir, body)?;
            return Ok(true);
        }
        let mut names = body.names.write();
        self.load_locked(dir, &mut names)?;
        let there = u64::from(names.len());
        if names.place() == Place::Partial && self.fits_as_whole(there) {
            self.load_whole(dir, &mut names)?;
        }
        Ok(names.place() == Place::Whole)
    }

    /// May a directory of so many names be in memory as a whole, and grow by a quarter?
    fn fits_as_whole(&self, names: u64) -> bool {
        names + names / 4 <= self.whole_max()
    }

    /// Makes sure that it is known of a name what it leads to, or that it is not there, under the lock of all names of the
    /// directory, and is about to change this one.
    ///
    /// # Errors
    /// What the store answers.
    #[inline]
    pub(crate) fn hold_name(&self, dir: &Inode, names: &mut Names<'_>, name: &[u8]) -> Result<()> {
        if names.place() == Place::Whole && u64::from(names.len()) <= self.whole_max() {
            return Ok(());
        }
        self.hold_in_partial(dir, names, name)
    }

    #[cold]
    fn hold_in_partial(&self, dir: &Inode, names: &mut Names<'_>, name: &[u8]) -> Result<()> {
        if self.coherence.is_some() {
            return Err(Errno::EROFS);
        }
        match names.place() {
            Place::Unloaded => self.load_locked(dir, names)?,
            Place::Whole => self.make_partial(names),
            Place::Partial | Place::Dated => {}
        }
        names.begin_change();
        if names.hold(name) == Known::Unknown {
            let asked = self.ask_store(dir.ino(), name)?;
            self.learn(dir, names, name, asked.map(|(entry, _)| entry))?;
        }
        Ok(())
    }
}

impl Directories for Core {
    fn metadata_load(&self) -> Load {
        Self::metadata_load(self)
    }

    fn frees_inodes(&self) -> bool {
        self.reclaim.frees_inodes()
    }

    fn names_in_memory(&self) -> Option<u64> {
        // What did not reach the store after it failed is here alone. And a store that others change is not asked for runs of names:
        // they go with their directories.
        let stay = self.failure.is_latched() || self.coherence.is_some();
        (!stay).then(|| u64::try_from(self.names.sum()).unwrap_or(0))
    }

    fn name_bytes(&self) -> u64 {
        Self::name_bytes(self)
    }

    fn forget_large_directories(&self, walk: &mut InodeWalk, most: u64) -> u64 {
        let least = self.policy.whole_directory();
        let is_large = |inode: &Inode| {
            let large = inode.directory().is_ok_and(|body| {
                body.names.place() == Place::Whole && body.names.in_catalog() > least
            });
            Take::from(large)
        };
        let mut gone = 0;
        let walked = self.walk_inodes_if(walk, is_large, &mut |node| {
            let body = node.inode().directory()?;
            let mut names = body.names.write();
            if names.place() == Place::Whole {
                gone += u64::from(body.names.in_catalog());
                self.make_partial(&mut names);
            }
            Ok(match gone < most {
                true => Visit::Continue,
                false => Visit::Stop,
            })
        });
        debug_assert!(walked.is_ok(), "nobody failed");
        gone
    }
}
