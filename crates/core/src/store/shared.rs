//! Stores that number their inodes themselves and find them by their names, and that others may change.

use std::os::fd::BorrowedFd;
use std::sync::Weak;
use std::time::{Duration, Instant};

use super::{InodeRecord, NameRun};
use crate::types::{Errno, Ino, Result};

/// How long what a store told may be kept (NFS calls it cache coherence).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// Nobody else changes it while it is open: for ever.
    Exclusive,
    /// Others change it: for so long, and then the store is asked again.
    For(Duration),
    /// Others change it, and it [tells](Changes) of that, as far as it [hears](Shared::hears_of) of it.
    Told {
        /// So long what it does not hear of.
        valid: Duration,
        /// So long what it hears of, if it tells of no change: there are changes of which nobody hears.
        heard: Duration,
    },
}

/// What is above a store, and told of changes that others made. Called with nothing locked, after the change; may wait.
pub trait Changes: Send + Sync {
    /// An inode may have changed: its attributes, extended ones too, or the names of a directory; with `content` also the
    /// bytes of a file.
    fn inode(&self, ino: Ino, content: bool);
    /// A name of a directory appeared, went, or leads elsewhere.
    fn entry(&self, dir: Ino, name: &[u8]);
    /// Changes were missed: anything may have changed.
    fn all(&self);
}

/// A directory as a whole, as a store told it.
#[derive(Clone, Debug)]
pub struct WholeDirectory {
    /// The record of the directory itself, from before its names were read.
    pub record: InodeRecord,
    /// Its names, as [`Store::read_names`](super::Store::read_names) tells them.
    pub names: NameRun,
    /// What its names lead to, if that was asked for, as [`Store::look_up`](super::Store::look_up) tells it; those left out that could
    /// not be looked up.
    pub inodes: Vec<InodeRecord>,
}

/// An ability: a store that finds inodes by their names, as a directory of the host does, or a table. It deals the numbers,
/// and the number of an inode stays its own as long as the core [knows](Self::forgotten) it. Others may change such a store.
///
/// The core asks it for names in batches ([`Store::look_up`](super::Store::look_up)), and by number only for what it was told
/// by name. In an answer for several names, one that could not be looked up is a name without an inode. Cookies mean
/// nothing beyond one reading of all names of a directory, and of a name that was looked up nothing at all: the core deals its own,
/// and names that stay keep theirs.
///
/// What is kept of an inode stands as long as its record does: its content and its extended attributes while size, `mtime` and
/// `ctime` are the same, its names while `mtime` and `ctime` are.
///
/// It is written [through](super::Through).
pub trait Shared: Send + Sync {
    /// How long what was told may be kept. Constant over its life.
    fn coherence(&self) -> Coherence;

    /// Would any change since `at`, when the store was asked for it, show in the record of this inode? Not if it had been
    /// changed a moment before, and times are coarse.
    fn is_settled(&self, record: &InodeRecord, at: Instant) -> bool {
        let _ = (record, at);
        true
    }

    /// From now on changes are told to this, as long as it is there: once, before anything is asked.
    fn attach(&self, changes: Weak<dyn Changes>) {
        let _ = changes;
    }

    /// The core is about to ask for this inode, or for what is in this directory, and wants to be told of changes from now on, if that
    /// is possible.
    fn listen(&self, ino: Ino) {
        let _ = ino;
    }

    /// Was this inode, if it is known, told by this name last? Else a listing that has the name with its number may mean another, which has
    /// got the number since.
    fn is_known_by(&self, ino: Ino, dir: Ino, name: &[u8]) -> bool {
        let _ = (ino, dir, name);
        true
    }

    /// Are all changes of this inode told that were made since then? Of a directory also those of its names, and whether its own leads to it.
    fn hears_of(&self, record: &InodeRecord, since: Instant) -> bool {
        let _ = (record, since);
        false
    }

    /// What is told under this number is another inode than the one that the core knows by it, though nothing else tells them
    /// apart. The other one gets another number, before it is looked up again.
    fn is_another(&self, ino: Ino) {
        let _ = ino;
    }

    /// Reads several directories, of at most so many names each, with the inodes that these lead to if `inodes` says so: an answer
    /// for each, in this order, that takes hardly longer than one alone. `None`: it has more names, or could not be read; a
    /// question for it alone tells why. Nothing at all: a store that answers one no later than many need not.
    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
    ) -> Vec<Option<WholeDirectory>> {
        let _ = (dirs, most, inodes);
        Vec::new()
    }

    /// Shows the host's file behind a regular file, for a kernel that reads and writes it there by itself with the credentials that
    /// the calling thread has meanwhile: those of the store, without the capabilities of keeping set-id bits and of passing
    /// limits. The descriptor may be one that only names the file (`O_PATH`).
    ///
    /// # Errors
    /// `EOPNOTSUPP`: no file of the host is behind it. `ESTALE`: it is not known, or no longer where it was.
    fn with_backing(&self, ino: Ino, act: &mut dyn FnMut(BorrowedFd<'_>)) -> Result<()> {
        let _ = (ino, act);
        Err(Errno::EOPNOTSUPP)
    }

    /// May a regular file of this size, as its record tells it, have other content than that says? It is read past memory then.
    fn has_no_size(&self, size: u64) -> bool {
        let _ = size;
        false
    }

    /// Reads such a file at `offset`; returns how many bytes, none at its end.
    ///
    /// # Errors
    /// What the store answers.
    fn read_without_size(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let _ = (ino, offset, buf);
        Err(Errno::EOPNOTSUPP)
    }

    /// The core knows an inode no longer: neither is it in memory, nor does a front end have a use of it. Called with the number
    /// locked, so it waits for nothing.
    fn forgotten(&self, ino: Ino) {
        let _ = ino;
    }

    /// The time by which validity is measured.
    fn now(&self) -> Instant {
        Instant::now()
    }
}
