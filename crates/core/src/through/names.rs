//! Names of directories that are in memory, when an operation has changed one.
//!
//! *Invariant.* Names that are believed are those that the directory had when its times were the noted ones. So they take a change in, and
//! have its times from then on, if those from directly before it are the noted ones and no other change through this core ended since
//! it began; else they are read again. How long they are believed counts from when they were read, so that what others changed within the
//! same tick of the store's clock is not missed for longer than is [allowed](crate::store::Coherence).
//!
//! *Locking.* What is known changes with the names locked; the store is not asked under that lock.

use super::ThroughStore;
use super::take_in::Changed;
use crate::coherence::NamesRead;
use crate::directory::{Names, Place};
use crate::inode::{DirectoryBody, Inode, Numbered as _};
use crate::store::Done;
use crate::types::{Errno, FileType, Ino, Result};

/// A change of names of a directory, from before the store is asked for it.
#[derive(Clone, Copy)]
pub(super) struct NamesChange<'n> {
    pub(super) dir: &'n Inode,
    body: &'n DirectoryBody,
    /// Changes that had ended.
    before: u32,
}

impl ThroughStore<'_> {
    pub(super) fn begin<'n>(self, dir: &'n Inode, body: &'n DirectoryBody) -> NamesChange<'n> {
        let before = self.shared.coherence.changes(dir.ino());
        NamesChange { dir, body, before }
    }

    /// The store has changed names: takes in what became of the directory, and does the same to its names in memory if they stand.
    /// `change` says whether it could.
    ///
    /// # Errors
    /// As [`take_in`](Self::take_in).
    pub(super) fn end(
        self,
        change: NamesChange<'_>,
        done: &Done,
        apply: impl FnOnce(&mut Names<'_>) -> bool,
    ) -> Result<()> {
        let NamesChange { dir, body, before } = change;
        let coherence = self.shared.coherence;
        let told = self.touched(done, dir.ino()).and_then(|(touched, at)| {
            self.take_in(dir, &touched, at, Changed::Nothing)?;
            Ok(touched)
        });
        let mut names = body.names.write();
        let checked = coherence.checked(dir.ino());
        let is_there = matches!(names.place(), Place::Whole | Place::Dated);
        let read = checked.names.filter(|read| {
            let was = told.as_ref().ok().and_then(|touched| touched.before);
            is_there
                && checked.changes == before
                && was.is_some_and(|was| (was.mtime, was.ctime) == read.times)
        });
        let count = names.len();
        let read = read.filter(|_| apply(&mut names));
        self.core
            .names
            .add(i64::from(names.len()) - i64::from(count));
        let read = read.and_then(|read| {
            let record = &told.as_ref().ok()?.record;
            Some(NamesRead {
                at: read.at,
                times: (record.mtime, record.ctime),
                settled: false,
                heard: read.heard,
            })
        });
        if read.is_none() && names.place() == Place::Whole {
            names.become_whole(true);
        }
        coherence.note_change(dir.ino(), read);
        told.map(drop)
    }
}

impl NamesChange<'_> {
    /// The store refused to change a name, which contradicts what is in memory: that goes, before its time is over.
    pub(super) fn refused(self, through: ThroughStore<'_>, name: &[u8], error: Errno) {
        let coherence = through.shared.coherence;
        let is_there = self.body.names.find_in_catalog(name).is_some();
        let contradicts = match error {
            Errno::EEXIST => !is_there,
            Errno::ENOENT | Errno::ESTALE | Errno::ENOTDIR | Errno::EISDIR => is_there,
            _ => false,
        };
        // What is exclusive is as it is in memory.
        if contradicts && coherence.is_dated() {
            let _names = self.body.names.write();
            coherence.note_change(self.dir.ino(), None);
        }
    }
}

/// A name leads to this from now on; tells its cookie.
pub(super) fn enter(
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
