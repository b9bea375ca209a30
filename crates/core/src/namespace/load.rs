//! Loading names of directories: small directories as a whole, large ones name by name.
//!
//! A directory begins [partial](Residency::Partial) if it has more names than
//! [`Options::whole_directory`](crate::Options). It is loaded as a whole once a sixteenth of its
//! names was read, one by one or in runs: that has cost about as much by then. A whole directory
//! may take an eighth of the memory limit. If it outgrows that, or memory gets short, it becomes
//! partial again.
//!
//! Over a store that others may change (`shared/`), a directory is read as a whole or asked for one
//! name, and its names cannot be changed here.
//!
//! *Locking.* Known names change only under the lock of the directory's names. The store is first
//! asked for a name without the lock. The answer is used if no change of the directory began
//! meanwhile; otherwise, also after an error, the store is asked again under the lock.

use crate::core::Core;
use crate::directory::{COOKIE_END, Entry, FIRST_COOKIE, Known, Loaded, Names, Residency};
use crate::inode::{DirectoryBody, Inode, Numbered as _, directory_names, directory_size};
use crate::inodes::walk::walk_inodes_if;
use crate::inodes::{InodeWalk, Take, Visit};
use crate::reclaim::sizes::NAME_BYTES;
use crate::shared::names::names_as_they_are;
use crate::store::{InodeRecord, NameRun};
use crate::types::{Errno, Ino, Result};

/// Names loaded in one run.
const RUN: usize = 4096;
/// Names that each lookup of an absent name adds to the filter.
const FILTER_RUN: usize = 512;
/// 1/`WHOLE_PART` of the memory limit is available to a whole directory.
const WHOLE_PART: u64 = 8;
/// 1/`KNOWN_PART` of the limit is available to the known names of a partial directory.
const KNOWN_PART: u64 = 32;
/// A directory is loaded as a whole when 1/`ASKED_PART` of its names was read.
const ASKED_PART: u64 = 16;

/// The greatest number of names of a whole directory.
fn whole_max(core: &Core) -> u64 {
    match u64::from(core.policy.whole_directory()) {
        0 => 0,
        least => least.max(core.reclaim.limit() / (WHOLE_PART * NAME_BYTES)),
    }
}

/// The greatest number of known names of a partial directory.
pub(super) fn known_max(core: &Core) -> usize {
    match core.policy.whole_directory() {
        // A test setting: known names are dropped as early as possible.
        0 => 0,
        _ => usize::try_from(core.reclaim.limit() / (KNOWN_PART * NAME_BYTES)).unwrap_or(0),
    }
}

/// Loads the names of a directory, or their number if it is partial.
///
/// # Errors
/// The store's.
#[inline]
pub(crate) fn load_names(core: &Core, dir: &Inode, body: &DirectoryBody) -> Result<()> {
    match body.names.place() {
        Residency::Whole | Residency::Partial => Ok(()),
        _ if core.coherence.is_some() => names_as_they_are(core, dir, body),
        _ => load_locked(core, dir, &mut body.names.write()),
    }
}

#[cold]
pub(super) fn load_locked(core: &Core, dir: &Inode, names: &mut Names<'_>) -> Result<()> {
    hop!();
    if names.place() != Residency::Unloaded {
        return Ok(());
    }
    if core.coherence.is_some() {
        return Err(Errno::EROFS);
    }
    let expected = directory_names(dir.size());
    let least = core.policy.whole_directory();
    if expected <= u64::from(least) && least > 0 {
        return load_whole(core, dir, names);
    }
    // Greater than all cookies that the directory ever gave.
    let next_cookie = core.store.end_cookie(dir.ino())?.max(FIRST_COOKIE);
    if next_cookie > COOKIE_END {
        return Err(Errno::EUCLEAN);
    }
    let expected = u32::try_from(expected).map_err(|_| Errno::EUCLEAN)?;
    names.become_partial(expected, next_cookie);
    Ok(())
}

/// Loads all names of a directory. The caller holds their lock.
fn load_whole(core: &Core, dir: &Inode, names: &mut Names<'_>) -> Result<()> {
    hop!();
    let mut loaded = Loaded::new();
    let expected = directory_names(dir.size());
    let mut run = NameRun::default();
    let mut after = 0;
    loop {
        run.clear();
        core.store.read_names(dir.ino(), after, RUN, &mut run)?;
        let Some(last) = run.last_cookie() else { break };
        after = last;
        loaded.add(&run, expected)?;
    }
    let mut next_cookie = core.store.end_cookie(dir.ino())?;
    if names.place() == Residency::Partial {
        next_cookie = next_cookie.max(names.next_cookie());
    }
    loaded.go_on_at(next_cookie)?;
    core.names.add(i64::from(loaded.len()));
    core.reclaim
        .name_sizes
        .came(loaded.len() as usize, loaded.bytes());
    dir.write().size = directory_size(loaded.len());
    names.complete(loaded);
    core.names.add(names.recount());
    Ok(())
}

/// Counts a new name in a directory.
pub(crate) fn count_name(core: &Core, names: &Names<'_>, name: &[u8]) {
    core.names.add(names.counts(1));
    core.reclaim.name_sizes.came(1, name.len());
}

/// Makes a whole directory partial. The caller holds the lock of its names.
fn make_partial(core: &Core, names: &mut Names<'_>) {
    let there = names.len();
    let next_cookie = names.next_cookie();
    names.become_partial(there, next_cookie);
    core.names.add(names.recount() - i64::from(there));
}

/// Is the directory empty? The caller holds the lock of its names.
///
/// # Errors
/// The store's.
pub(crate) fn is_empty_directory(core: &Core, dir: &Inode, names: &mut Names<'_>) -> Result<bool> {
    load_locked(core, dir, names)?;
    if names.place() != Residency::Partial {
        return Ok(names.is_empty());
    }
    let mut run = NameRun::default();
    core.store.read_names(dir.ino(), 0, 1, &mut run)?;
    Ok(run.is_empty())
}

/// Asks the store for a name, and for the inode's record if it returns one.
pub(super) fn ask_store(
    core: &Core,
    dir: Ino,
    name: &[u8],
) -> Result<Option<(Entry, Option<InodeRecord>)>> {
    hop!();
    let mut found = Vec::with_capacity(1);
    core.store.look_up(dir, &[name], &mut found)?;
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

/// Records the store's answer for a name of a partial directory. The caller holds the lock.
pub(super) fn learn_name(
    core: &Core,
    dir: &Inode,
    names: &mut Names<'_>,
    name: &[u8],
    entry: Option<Entry>,
) -> Result<()> {
    hop!();
    names.learn(name, entry, known_max(core));
    core.reclaim.name_sizes.came(1, name.len());
    if entry.is_none()
        && let Some(after) = names.filter_misses()
    {
        // A run at a time, so that no lookup waits for all names.
        let mut run = NameRun::default();
        core.store
            .read_names(dir.ino(), after, FILTER_RUN, &mut run)?;
        names.fill_filter(&run);
    }
    core.names.add(names.recount());
    load_whole_if_worth_it(core, dir, names)
}

/// Loads all names of a partial directory if enough of them were read. The caller holds the
/// lock.
fn load_whole_if_worth_it(core: &Core, dir: &Inode, names: &mut Names<'_>) -> Result<()> {
    let there = u64::from(names.len());
    match names.asked() >= there / ASKED_PART && fits_as_whole(core, there) {
        true => load_whole(core, dir, names),
        false => Ok(()),
    }
}

/// Reads a run of names behind a cookie from the store. Of a partial directory, records them if
/// no change of the directory began meanwhile.
///
/// # Errors
/// The store's; `EUCLEAN` if the cookies do not ascend.
pub(crate) fn learn_run(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    after: u64,
    max: usize,
    run: &mut NameRun,
) -> Result<()> {
    let changes = {
        let names = body.names.write();
        (names.place() == Residency::Partial).then(|| names.changes())
    };
    let had = run.len();
    core.store.read_names(dir.ino(), after, max, run)?;
    let behind = || run.iter().skip(had);
    let ascend = behind().is_sorted_by(|one, other| one.cookie < other.cookie);
    if !ascend || behind().any(|entry| entry.cookie <= after) {
        return Err(Errno::EUCLEAN);
    }
    let room = known_max(core);
    if changes.is_some() && room > 0 {
        let mut names = body.names.write();
        if names.place() == Residency::Partial && Some(names.changes()) == changes {
            names.learn_all(run, room);
            core.reclaim.name_sizes.came(run.len(), run.name_bytes());
            core.names.add(names.recount());
            load_whole_if_worth_it(core, dir, &mut names)?;
        }
    }
    Ok(())
}

/// Loads a directory as a whole, if it fits. Returns whether it is whole.
///
/// # Errors
/// The store's.
pub(super) fn make_whole(core: &Core, dir: &Inode, body: &DirectoryBody) -> Result<bool> {
    if core.coherence.is_some() {
        names_as_they_are(core, dir, body)?;
        return Ok(true);
    }
    let mut names = body.names.write();
    load_locked(core, dir, &mut names)?;
    let there = u64::from(names.len());
    if names.place() == Residency::Partial && fits_as_whole(core, there) {
        load_whole(core, dir, &mut names)?;
    }
    Ok(names.place() == Residency::Whole)
}

/// Does a directory of this many names fit in memory as a whole, with a quarter more?
fn fits_as_whole(core: &Core, names: u64) -> bool {
    names + names / 4 <= whole_max(core)
}

/// Pins the entry of a name, or its absence, for a change of it. The caller holds the lock of
/// the names.
///
/// # Errors
/// The store's.
#[inline]
pub(crate) fn hold_name(
    core: &Core,
    dir: &Inode,
    names: &mut Names<'_>,
    name: &[u8],
) -> Result<()> {
    if names.place() == Residency::Whole && u64::from(names.len()) <= whole_max(core) {
        return Ok(());
    }
    hold_in_partial(core, dir, names, name)
}

#[cold]
fn hold_in_partial(core: &Core, dir: &Inode, names: &mut Names<'_>, name: &[u8]) -> Result<()> {
    hop!();
    if core.coherence.is_some() {
        return Err(Errno::EROFS);
    }
    match names.place() {
        Residency::Unloaded => load_locked(core, dir, names)?,
        Residency::Whole => make_partial(core, names),
        Residency::Partial | Residency::Dated => {}
    }
    names.begin_change();
    if names.hold(name) == Known::Unknown {
        let asked = ask_store(core, dir.ino(), name)?;
        learn_name(core, dir, names, name, asked.map(|(entry, _)| entry))?;
    }
    Ok(())
}

/// The number of names in memory. `None`: none of them can be freed.
pub(crate) fn names_in_memory(core: &Core) -> Option<u64> {
    // After a failure, changes that did not reach the store are only here. And names of a store
    // that others change are not read in runs: they are dropped with their directories.
    let stay = core.failure.is_latched() || core.coherence.is_some();
    (!stay).then(|| u64::try_from(core.names.sum()).unwrap_or(0))
}

/// Frees the names of large directories that this walk visits, until `most` were freed; returns
/// their number.
pub(crate) fn forget_large_directories(core: &Core, walk: &mut InodeWalk, most: u64) -> u64 {
    let least = core.policy.whole_directory();
    let is_large = |inode: &Inode| {
        let large = inode.directory().is_ok_and(|body| {
            body.names.place() == Residency::Whole && body.names.cached() > least
        });
        Take::from(large)
    };
    let mut gone = 0;
    let walked = walk_inodes_if(core, walk, is_large, &mut |node| {
        let body = node.inode().directory()?;
        let mut names = body.names.write();
        if names.place() == Residency::Whole {
            gone += u64::from(body.names.cached());
            make_partial(core, &mut names);
        }
        Ok(match gone < most {
            true => Visit::Continue,
            false => Visit::Stop,
        })
    });
    debug_assert!(walked.is_ok(), "nobody failed");
    gone
}
