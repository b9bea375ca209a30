//! Updates of cached names after an operation has changed a directory.
//!
//! *Invariant.* Cached names are valid while the directory's times equal those noted when they were
//! read. An operation updates them, and notes the new times, under two conditions. The times
//! directly before it equal the noted ones, and no other change through this core ended since it
//! began. Otherwise the names are read again.
//!
//! The validity of names still counts from the time of their reading. So a change by others within
//! one tick of the store's clock is not missed for longer than [allowed](crate::store::Coherence).
//!
//! *Locking.* The noted times change with the names locked; the store is not asked under that lock.

use super::{Changed, Performed};
use crate::coherence::NamesRead;
use crate::directory::{Names, Residency};
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::types::{FileType, Ino, Result};

impl Performed<'_> {
    /// The store has changed names: updates the directory, and applies the change to its cached
    /// names if they are valid. `apply` returns whether it could.
    ///
    /// # Errors
    /// Those of [`take_in`](super::ThroughStore::take_in).
    pub(crate) fn update_names(
        &self,
        dir: &Inode,
        body: &DirectoryBody,
        apply: impl FnOnce(&mut Names<'_>) -> bool,
    ) -> Result<()> {
        let through = self.through;
        let coherence = through.shared.coherence;
        let touched = through.touched(&self.done, dir.ino());
        let touched = touched.and_then(|(touched, at)| {
            through.take_in(dir, &touched, at, Changed::Nothing)?;
            Ok(touched)
        });
        let mut names = body.names.write();
        let checked = coherence.checked(dir.ino());
        let is_there = matches!(names.place(), Residency::Whole | Residency::Dated);
        let read = checked.names.filter(|read| {
            let was = touched.as_ref().ok().and_then(|touched| touched.before);
            is_there
                && self.changes.contains(&Some((dir.ino(), checked.changes)))
                && was.is_some_and(|was| (was.mtime, was.ctime) == read.times)
        });
        let count = names.len();
        let read = read.filter(|_| apply(&mut names));
        through
            .core
            .names
            .add(i64::from(names.len()) - i64::from(count));
        let read = read.and_then(|read| {
            let record = &touched.as_ref().ok()?.record;
            Some(NamesRead {
                at: read.at,
                times: (record.mtime, record.ctime),
                settled: false,
                notified: read.notified,
            })
        });
        if read.is_none() && names.place() == Residency::Whole {
            names.become_whole(true);
        }
        coherence.note_change(dir.ino(), read);
        touched.map(drop)
    }

    /// As [`update_names`](Self::update_names), for a name that leads to this inode now. Returns
    /// its cookie, if the cached names are valid.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn enter_name(
        &self,
        (dir, body): (&Inode, &DirectoryBody),
        name: &[u8],
        entry: (Ino, FileType),
    ) -> Result<Option<u64>> {
        let mut cookie = None;
        self.update_names(dir, body, |names| {
            cookie = enter(names, name, entry);
            cookie.is_some()
        })?;
        Ok(cookie)
    }
}

/// Sets the inode of a name; returns its cookie.
pub(crate) fn enter(
    names: &mut Names<'_>,
    name: &[u8],
    (ino, kind): (Ino, FileType),
) -> Option<u64> {
    if names.has(name) {
        names.replace(name, ino, kind);
    } else {
        let cookie = names.next_cookie();
        names.insert(name, cookie, ino, kind).ok()?;
    }
    names.get(name).map(|entry| entry.cookie)
}
