//! Names of directories that others change: read as a whole where they are listed, or where many were asked for one by one.

use holdfast_sync::epoch;
use std::collections::HashSet;
use std::time::Instant;

use super::SharedStore;
use crate::coherence::{NamesRead, Standing};
use crate::directory::{Directory, Names, Place};
use crate::file_system::Core;
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::store::{InodeRecord, NameRun};
use crate::types::{Errno, Ino, NAME_MAX, Result};

/// Names asked for in one run.
const RUN: usize = 4096;
/// So many names are asked for one by one before a directory is listed, at least.
const LIST_AFTER: u64 = 3;
/// Bytes of a directory, as its size tells, for each of which one more is: what a sixteenth of the names takes.
const BYTES_A_NAME: u64 = 32 * 16;

/// The names of a directory are asked for: since when, and how often they had been changed through this core.
#[derive(Clone, Copy)]
pub(super) struct NamesAsked {
    at: Instant,
    changes: u32,
}

impl NamesAsked {
    /// From before they are read: a change meanwhile shows later.
    pub(super) fn now(shared: SharedStore<'_>, dir: Ino) -> Self {
        Self {
            at: shared.ask(dir),
            changes: shared.coherence.changes(dir),
        }
    }
}

impl Core {
    /// Are the names in memory those of a directory that is fresh?
    pub(super) fn has_names(
        &self,
        shared: SharedStore<'_>,
        dir: &Inode,
        body: &DirectoryBody,
    ) -> bool {
        match body.names.place() {
            Place::Whole => true,
            Place::Dated => {
                let meta = dir.meta();
                let checked = shared.coherence.checked(dir.ino());
                checked.names.is_some_and(|names| {
                    let holds = || shared.coherence.names_hold(&checked, &names, shared.now());
                    names.times == (meta.mtime, meta.ctime) && (names.settled || holds())
                })
            }
            Place::Unloaded | Place::Partial => false,
        }
    }

    /// One more name is about to be asked for alone: have there been so many that a listing would have told them as soon?
    pub(super) fn is_to_list(&self, shared: SharedStore<'_>, dir: &Inode) -> bool {
        let asked = shared.coherence.count_name(dir.ino());
        u64::from(asked) >= LIST_AFTER.max(dir.size() / BYTES_A_NAME)
    }

    /// Makes sure that all names of a directory are in memory, and not older than the store allows.
    ///
    /// # Errors
    /// `ESTALE`: there is no such directory any more. What the store answers.
    pub(crate) fn names_as_they_are(&self, dir: &Inode, body: &DirectoryBody) -> Result<()> {
        let Some(shared) = self.shared() else {
            return Ok(());
        };
        if body.names.is_dead() {
            // It was empty, and stays so.
            return Ok(());
        }
        self.refresh(dir)?;
        if self.has_names(shared, dir, body) {
            return Ok(());
        }
        let coherence = shared.coherence;
        let _listing = coherence.listing(dir.ino());
        if self.has_names(shared, dir, body) {
            return Ok(());
        }
        let asked = NamesAsked::now(shared, dir.ino());
        let record = self.ask_for_record(dir.ino())?;
        let listed = self.list_store(dir.ino())?;
        self.take_in_names(shared, (dir, body), (asked, false), &record, &listed)
    }

    /// Takes in what the store told of a directory and of all its names. `ahead`: nobody waits for them.
    ///
    /// # Errors
    /// `ESTALE`: there is no such directory any more, or it was changed through this core meanwhile, and came ahead. `ENOMEM`.
    pub(super) fn take_in_names(
        &self,
        shared: SharedStore<'_>,
        (dir, body): (&Inode, &DirectoryBody),
        (NamesAsked { at, changes }, ahead): (NamesAsked, bool),
        record: &InodeRecord,
        listed: &NameRun,
    ) -> Result<()> {
        let coherence = shared.coherence;
        self.date(shared, dir, record, at, false)?;
        let mut names = body.names.write();
        // One that was changed through this core meanwhile is read again when it is asked for the next time.
        let is_true = coherence.changes(dir.ino()) == changes;
        if !is_true && ahead {
            // What is known of the names may be of after that change.
            return Err(Errno::ESTALE);
        }
        self.put_names(shared, (dir.ino(), &body.names), &mut names, listed)?;
        names.become_whole(coherence.is_dated() || !is_true);
        let Standing { settled, heard } = shared.standing(record, at);
        let read = NamesRead {
            at,
            times: (record.mtime, record.ctime),
            settled,
            heard,
        };
        coherence.note_names(dir.ino(), is_true.then_some(read));
        Ok(())
    }

    fn list_store(&self, dir: Ino) -> Result<NameRun> {
        let (mut all, mut run, mut after) = (NameRun::default(), NameRun::default(), 0);
        loop {
            self.alive()?;
            run.clear();
            self.store.read_names(dir, after, RUN, &mut run)?;
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

    /// Makes the names of a directory, which are locked, those that were listed. Names that stay keep their cookies.
    fn put_names(
        &self,
        shared: SharedStore<'_>,
        (dir, directory): (Ino, &Directory),
        names: &mut Names<'_>,
        listed: &NameRun,
    ) -> Result<()> {
        // Longer names nobody can ask for.
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
        // What went goes last: a lookup meanwhile finds what moved.
        let put = listed().try_for_each(|entry| {
            let old = names.get(entry.name);
            if old.is_some_and(|old| (old.ino, old.kind) == (entry.ino, entry.kind)) {
                return Ok(());
            }
            if !shared.is_known_by(entry.ino, dir, entry.name) {
                shared.coherence.doubt_if_known(entry.ino, now);
            }
            if let Some(old) = old {
                // The inode lost a name: it may be gone and its number reused.
                shared.coherence.doubt(old.ino, now);
                names.replace(entry.name, entry.ino, entry.kind);
                return Ok(());
            }
            let cookie = names.next_cookie();
            self.reclaim.name_sizes.came(1, entry.name.len());
            names.insert(entry.name, cookie, entry.ino, entry.kind)
        });
        for name in &gone {
            if let Some(old) = names.get(name) {
                shared.coherence.doubt(old.ino, now);
            }
            names.remove(name);
        }
        self.names.add(i64::from(names.len()) - before);
        put
    }
}
