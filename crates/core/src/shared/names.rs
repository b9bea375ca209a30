//! Names of directories that others change. They are read as a whole when the directory is listed,
//! or after several single lookups.

use holdfast_sync::epoch;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::shared_store::SharedStore;
use crate::coherence::{NamesRead, Standing};
use crate::core::Core;
use crate::directory::{Directory, Names, Residency};
use crate::evictions;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::load::Asked;
use crate::reclaim::usage::prefetch_room;
use crate::shared::by_name::take_in_dated;
use crate::shared::{ask_for_record, date_inode, refresh_inode};
use crate::store::{InodeRecord, NameRun, WholeDirectory};
use crate::types::{Errno, Ino, NAME_MAX, Result};

/// Most names of a directory that is read in one call.
const AT_ONCE: usize = 1 << 17;
/// Names of a larger directory that are read in one run.
const RUN: usize = 1 << 14;
/// The minimum of single lookups before a directory is listed.
const LIST_AFTER: u64 = 3;
/// The size of a directory divided by this is the number of single lookups before it is listed:
/// about a sixteenth of its names.
const BYTES_A_NAME: u64 = 32 * 16;

/// The start of a reading of a directory's names, and the numbers of changes through this core and
/// of answers about single names until then.
#[derive(Clone, Copy)]
pub(super) struct NamesAsked {
    at: Instant,
    changes: u32,
    answers: u32,
}

impl NamesAsked {
    /// Called before the names are read: a change during the reading shows later.
    pub(super) fn now(shared: SharedStore<'_>, dir: Ino) -> Self {
        let at = shared.ask(dir);
        let checked = shared.coherence.checked(dir);
        Self {
            at,
            changes: checked.changes,
            answers: checked.answers,
        }
    }
}

/// Are the names in memory those of a fresh directory?
pub(super) fn has_names(shared: SharedStore<'_>, dir: &Inode, body: &DirectoryBody) -> bool {
    match body.names.place() {
        Residency::Whole => true,
        Residency::Dated => {
            let meta = dir.meta();
            let checked = shared.coherence.checked(dir.ino());
            checked.names.is_some_and(|names| {
                let holds = || {
                    shared
                        .coherence
                        .names_hold(&checked, &names, shared.present())
                };
                names.times == (meta.mtime, meta.ctime) && (names.settled || holds())
            })
        }
        Residency::Unloaded | Residency::Partial => false,
    }
}

/// Counts a single lookup. Would a listing have been as cheap as the lookups so far?
pub(super) fn is_to_list(shared: SharedStore<'_>, dir: &Inode) -> bool {
    let asked = shared.coherence.count_name(dir.ino());
    u64::from(asked) >= LIST_AFTER.max(dir.size() / BYTES_A_NAME)
}

/// Makes sure that all names of a directory are in memory, and fresh.
///
/// # Errors
/// `ESTALE`: the directory does not exist any more. Errors of the store.
pub(crate) fn names_as_they_are(core: &Core, dir: &Inode, body: &DirectoryBody) -> Result<()> {
    names_with(core, dir, body, false)
}

/// As [`names_as_they_are`]. With `inodes`, if the names have to be read, their inodes are loaded
/// as well, as far as that succeeds.
///
/// # Errors
/// The same.
pub(crate) fn names_with(
    core: &Core,
    dir: &Inode,
    body: &DirectoryBody,
    inodes: bool,
) -> Result<()> {
    let Some(shared) = core.shared() else {
        return Ok(());
    };
    if body.names.is_dead() {
        // It was empty, and stays so.
        return Ok(());
    }
    refresh_inode(core, dir)?;
    if has_names(shared, dir, body) {
        return Ok(());
    }
    let coherence = shared.coherence;
    let _listing = coherence.listing(dir.ino());
    if has_names(shared, dir, body) {
        return Ok(());
    }
    core.alive()?;
    let asked = NamesAsked::now(shared, dir.ino());
    if let Some((whole, evictions)) = read_at_once(core, shared, dir, body, inodes) {
        return take_in_whole(core, shared, (dir, body), (asked, false), &evictions, whole);
    }
    let record = ask_for_record(core, dir.ino())?;
    let listed = list_store(core, dir.ino())?;
    let names = (&record, &listed, &[][..]);
    take_in_names(core, shared, (dir, body), (asked, false), names)
}

/// Reads a directory in one call of the store. `None`: the store does not, or the directory is too
/// large. Returns also the evictions before the call.
fn read_at_once(
    core: &Core,
    shared: SharedStore<'_>,
    dir: &Inode,
    body: &DirectoryBody,
    inodes: bool,
) -> Option<(WholeDirectory, [u64; evictions::SHARDS])> {
    let room = match inodes && !shared.coherence.holds_never() {
        true => prefetch_room(core),
        false => 0,
    };
    if room > 0 {
        let parent = Ino(body.parent.load(Ordering::Relaxed));
        shared.coherence.walks.asks_for_inodes(parent);
    }
    let most = if room > 0 { room.min(AT_ONCE) } else { AT_ONCE };
    let evictions = core.evictions.snapshot();
    let answer = shared.read_directories(&[dir.ino()], most, room > 0);
    let whole = answer.into_iter().next().flatten()?;
    (whole.record.ino == dir.ino()).then_some((whole, evictions))
}

/// Applies a directory's record, all its names, and the inodes that came along. `ahead`: as for
/// [`take_in_names`].
///
/// # Errors
/// Those of [`take_in_names`].
pub(super) fn take_in_whole(
    core: &Core,
    shared: SharedStore<'_>,
    dir: (&Inode, &DirectoryBody),
    asked: (NamesAsked, bool),
    evictions: &[u64; evictions::SHARDS],
    whole: WholeDirectory,
) -> Result<()> {
    let WholeDirectory {
        record,
        names,
        mut inodes,
    } = whole;
    inodes.sort_unstable_by_key(|record| record.ino);
    inodes.dedup_by_key(|record| record.ino);
    let at = asked.0.at;
    // First: a thread that finds one of these names gets an inode that is not older.
    let came = take_in_dated(core, shared, &inodes, evictions, at, Asked::ForAll);
    take_in_names(core, shared, dir, asked, (&record, &names, &came))
}

/// Applies a directory's record and all its names. The inodes that came along ascend, and have
/// been applied. `ahead`: they were read ahead.
///
/// # Errors
/// `ESTALE`: the directory does not exist any more, or it was read ahead and changed through
/// this core meanwhile. `ENOMEM`.
pub(super) fn take_in_names(
    core: &Core,
    shared: SharedStore<'_>,
    (dir, body): (&Inode, &DirectoryBody),
    (asked, is_prefetch): (NamesAsked, bool),
    (record, listed, came): (&InodeRecord, &NameRun, &[Ino]),
) -> Result<()> {
    let (coherence, at) = (shared.coherence, asked.at);
    date_inode(core, shared, dir, record, at, false)?;
    let mut names = body.names.write();
    // A directory that was changed through this core during the reading is read again at its
    // next use.
    let is_true = coherence.changes(dir.ino()) == asked.changes;
    if !is_true && is_prefetch {
        // The names in memory may be newer than this change.
        return Err(Errno::ESTALE);
    }
    put_names(
        core,
        shared,
        (dir.ino(), &body.names),
        &mut names,
        (at, listed, came),
    )?;
    names.become_whole(coherence.is_dated() || !is_true);
    let Standing { settled, notified } = shared.standing(record, at);
    let read = NamesRead {
        at,
        times: (record.mtime, record.ctime),
        settled,
        notified,
    };
    coherence.note_names(dir.ino(), is_true.then_some(read));
    if coherence.checked(dir.ino()).answers != asked.answers {
        // These names may be older than an answer about one of them. They stand if the directory
        // has not changed since.
        coherence.invalidate(dir.ino(), shared.now());
    }
    Ok(())
}

fn list_store(core: &Core, dir: Ino) -> Result<NameRun> {
    let (mut all, mut run, mut after) = (NameRun::default(), NameRun::default(), 0);
    loop {
        core.alive()?;
        run.clear();
        core.store.read_names(dir, after, RUN, &mut run)?;
        let Some(last) = run.last_cookie() else {
            return Ok(all);
        };
        if last <= after {
            return Err(Errno::EUCLEAN);
        }
        after = last;
        run.iter()
            .for_each(|entry| all.push(entry.name, entry.cookie, entry.ino, entry.kind));
    }
}

/// Replaces the names of a directory, which are locked, with a listing. Names that stay keep
/// their cookies.
///
/// A name that is new, or leads to another inode than before, is not combined with an older
/// record of the inode: a file may have been written before it got this name. So this record is
/// asked for again, unless it came along.
fn put_names(
    core: &Core,
    shared: SharedStore<'_>,
    (dir, directory): (Ino, &Directory),
    names: &mut Names<'_>,
    (at, listed, came): (Instant, &NameRun, &[Ino]),
) -> Result<()> {
    // Longer names cannot be looked up.
    let listed = || listed.iter().filter(|entry| entry.name.len() <= NAME_MAX);
    let there: HashSet<&[u8]> = listed().map(|entry| entry.name).collect();
    let gone: Vec<Box<[u8]>> = {
        let guard = epoch::pin();
        let before = directory.after(0, &guard);
        let gone = before.filter(|(name, _)| !there.contains(name));
        gone.map(|(name, _)| name.into()).collect()
    };
    let now = shared.now();
    let before = i64::from(names.len());
    // Removed names go last: a concurrent lookup finds names that moved.
    let put = listed().try_for_each(|entry| {
        let old = names.get(entry.name);
        if old.is_some_and(|old| (old.ino, old.kind) == (entry.ino, entry.kind)) {
            return Ok(());
        }
        if !shared.is_known_by(entry.ino, dir, entry.name) {
            shared.coherence.invalidate_if_known(entry.ino, now);
        } else if came.binary_search(&entry.ino).is_err() {
            shared.coherence.invalidate_older(entry.ino, at, now);
        }
        if let Some(old) = old {
            // The inode lost a name: it may be freed and its number reused.
            shared.coherence.invalidate(old.ino, now);
            names.replace(entry.name, entry.ino, entry.kind);
            return Ok(());
        }
        let cookie = names.next_cookie();
        core.reclaim.name_sizes.came(1, entry.name.len());
        names.insert(entry.name, cookie, entry.ino, entry.kind)
    });
    for name in &gone {
        if let Some(old) = names.get(name) {
            shared.coherence.invalidate(old.ino, now);
        }
        names.remove(name);
    }
    core.names.add(i64::from(names.len()) - before);
    put
}
