//! Stores that number their inodes themselves and find them by names, and that others may change.

use std::os::fd::BorrowedFd;
use std::sync::Weak;
use std::time::{Duration, Instant};

use super::{InodeRecord, NameRun};
use crate::types::{Errno, Ino, Result};

/// How long an answer of the store stays valid (NFS calls it cache coherence).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// There is no other writer while it is open: answers stay valid.
    Exclusive,
    /// Others change it: answers expire after this time.
    For(Duration),
    /// Others change it, and it [notifies](Changes) the core of changes, as far as it
    /// [watches](Shared::hears_of) them.
    Notified {
        /// Validity of what it does not watch.
        valid: Duration,
        /// Validity of what it watches, if it reports no change: some changes cause no
        /// notification. Over a store that [proves](Shared::notified_until) its notifications,
        /// answers that are older than `valid` are valid only while the proof is.
        notified: Duration,
    },
}

/// The receiver of a store's notifications of changes by others. Called without locks, after the
/// change; may block.
pub trait Changes: Send + Sync {
    /// An inode may have changed: its attributes, including extended ones, or the names of a
    /// directory. With `content`, also the bytes of a file.
    fn inode(&self, ino: Ino, content: bool);
    /// A name of a directory was added, removed, or leads to another inode.
    fn entry(&self, dir: Ino, name: &[u8]);
    /// Notifications were lost: anything may have changed.
    fn all(&self);
    /// Is an inode open here, or referenced by a front end? Never `false` for one that is
    /// throughout the call. Unlike the others it does not block.
    fn knows(&self, ino: Ino) -> bool;
    /// Bytes of a file that the store accepted are lost, for this reason, and what it holds is
    /// what it had before them. Each file that is open reports that once, to fsync(2), or, if it is
    /// open for writing, to close(2). After a failure of the whole store, see
    /// [`Failure`](super::Failure).
    fn lost(&self, ino: Ino, reason: Errno);
}

/// A directory with all its names, as a store reads it.
#[derive(Clone, Debug)]
pub struct WholeDirectory {
    /// The record of the directory itself, from before its names were read.
    pub record: InodeRecord,
    /// The names, as [`Store::read_names`](super::Store::read_names) returns them.
    pub names: NameRun,
    /// The inodes of the names, if requested, as [`Store::look_up`](super::Store::look_up) returns
    /// them, without those that could not be looked up. They are not older than the names.
    pub inodes: Vec<InodeRecord>,
}

/// The ability of a store that finds inodes by names, as a directory of the host does, or a table.
/// The store allocates the numbers. The number of an inode is not reused while the core
/// [knows](Self::forgotten) the inode. Others may change such a store.
///
/// The core looks names up in batches ([`Store::look_up`](super::Store::look_up)), and loads by
/// number only inodes that an answer by name contained. In an answer for several names, a failed
/// lookup is a name without an inode. Cookies are valid only within one reading of all names of a
/// directory; `look_up` returns none. The core allocates its own cookies, and a name that stays
/// keeps its cookie.
///
/// Cached data of an inode is valid while its record is unchanged. Content and extended attributes
/// depend on `size`, `mtime` and `ctime`, the names of a directory on `mtime` and `ctime`.
///
/// Such a store is written [through](super::Through).
pub trait Shared: Send + Sync {
    /// How long answers may be cached. Constant over its life.
    fn coherence(&self) -> Coherence;

    /// Would any change since `at`, the time of the request for the record, show in the record? Not
    /// if the inode had changed shortly before and times are coarse.
    fn is_settled(&self, record: &InodeRecord, at: Instant) -> bool {
        let _ = (record, at);
        true
    }

    /// Sets the receiver of notifications, which may be dropped later. Called once, before all
    /// other calls.
    fn attach(&self, changes: Weak<dyn Changes>) {
        let _ = changes;
    }

    /// Requests notifications for an inode, if possible. The core calls this before it reads the
    /// inode, or names in this directory.
    fn listen(&self, ino: Ino) {
        let _ = ino;
    }

    /// Did this inode, if it is known, come from this name last? If not, its number in a listing
    /// may belong to another inode that reused it.
    fn is_known_by(&self, ino: Ino, dir: Ino, name: &[u8]) -> bool {
        let _ = (ino, dir, name);
        true
    }

    /// Has every change of this inode since `since` been reported? For a directory, that includes
    /// its names, and whether its own name still leads to it.
    fn hears_of(&self, record: &InodeRecord, since: Instant) -> bool {
        let _ = (record, since);
        false
    }

    /// Until when the core is certainly notified, by the last proof that notifications arrive: no
    /// change of what the store [watches](Self::hears_of) takes effect elsewhere before then
    /// without a notification here. Read at each use of an answer, so it must cost next to nothing.
    ///
    /// The store moves the time on after it has passed on all notifications that came before the
    /// proof. If some may be lost, it reports [that](Changes::all) first. `None`: notifications
    /// need no proof.
    fn notified_until(&self) -> Option<Instant> {
        None
    }

    /// The inode under this number is not the one that the core knows by it, though its record does
    /// not show that. The other inode gets another number before the next lookup of it.
    fn is_another(&self, ino: Ino) {
        let _ = ino;
    }

    /// Reads several directories, of at most `most` names each, in hardly more time than one. With
    /// `inodes`, also the inodes of their names. There is an answer for each directory, in this
    /// order. `None`: the directory has more names than `most`, or than the store reads at once, or
    /// could not be read: [`Store::read_names`](super::Store::read_names) returns the error. A
    /// store without an advantage in batches returns nothing.
    ///
    /// The core reads a single directory so too, before it asks for its record and its names.
    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
    ) -> Vec<Option<WholeDirectory>> {
        let _ = (dirs, most, inodes);
        Vec::new()
    }

    /// Lends the host's file behind a regular file, for a kernel that reads and writes it directly.
    /// `act` runs with the credentials of the store, without the capabilities of keeping set-id
    /// bits and of exceeding limits. The descriptor may be one that only names the file (`O_PATH`).
    ///
    /// # Errors
    /// `EOPNOTSUPP`: no file of the host is behind it. `ESTALE`: the inode is unknown, or its file
    /// has moved.
    fn with_backing(&self, ino: Ino, act: &mut dyn FnMut(BorrowedFd<'_>)) -> Result<()> {
        let _ = (ino, act);
        Err(Errno::EOPNOTSUPP)
    }

    /// May a regular file with this size in its record have content of another length? It is then
    /// read uncached.
    fn has_no_size(&self, size: u64) -> bool {
        let _ = size;
        false
    }

    /// Reads such a file at `offset`; returns the number of bytes, 0 at its end.
    ///
    /// # Errors
    /// Those of the store.
    fn read_without_size(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let _ = (ino, offset, buf);
        Err(Errno::EOPNOTSUPP)
    }

    /// The core does not know the inode any more: it is not in memory, and no front end refers to
    /// it. The caller holds a lock on the number, so the call must not block.
    fn forgotten(&self, ino: Ino) {
        let _ = ino;
    }

    /// The clock that measures validity.
    fn now(&self) -> Instant {
        Instant::now()
    }
}
