//! The contract of a store.

use crate::store::{
    EntryRecord, Failure, InodeRecord, Lsn, NameRun, Rest, Shared, SharedPages, SpaceReport,
    SpaceRun, WalkInodes, Writes,
};
use crate::types::{Caller, Ino, Result};
use holdfast_cache::Memory;
use std::sync::Arc;

/// What a store guarantees. The core asks once, when a file system is made over the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// All data is in the core: nothing is ever loaded, so nothing is evicted.
    pub pinned: bool,
    /// Calls may wait for a device: a front end keeps them off threads that must not block.
    pub blocks: bool,
    /// Files up to this length take no page of their own; 0 if all files do. A file that grows
    /// beyond it needs a page for its old content.
    pub small: u64,
    /// The changes that free space return it to the store: [`release`](super::Behind::release) need
    /// not be called for pages that were never loaded, which would have to be counted first.
    pub frees: bool,
}

/// The reading side of a store. The module's documentation defines order, atomicity and failure.
pub trait Store: Send + Sync + 'static {
    /// The guarantees of this store. Constant over its life.
    fn guarantees(&self) -> Guarantees;

    /// The way of changing this store. Constant over its life: the core asks once.
    fn writes(self: Arc<Self>) -> Writes;

    /// The failure latch of this store. The core asks once, and closes it too if
    /// [`apply`](super::Behind::apply) fails.
    fn failure(&self) -> Arc<Failure> {
        Arc::default()
    }

    /// The memory budget that the file system and its store share. A store that keeps dirty or
    /// reusable data joins it. Called once.
    fn join(&self, memory: &Arc<Memory>) {
        let _ = memory;
    }

    /// Loads inodes by number, in any order; numbers that do not exist are left out.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()>;

    /// What these inodes have beside their records, in this order: the targets of symbolic links,
    /// and the extended attributes of inodes that may have any.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when the data of any of them cannot be read.
    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()>;

    /// Looks names of a directory up without loading the directory: adds an answer for each name,
    /// in this order, with the inode that the name leads to. `None`: the name does not exist. A
    /// name without an inode exists, but its inode cannot be read or is missing; a load of that
    /// inode returns the error.
    ///
    /// While a name is being added or removed, either answer is right: the caller detects the
    /// change and retries.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when any of the names cannot be read.
    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()>;

    /// Adds a run of at most `max` names with cookies greater than `after`, in cookie order.
    /// Nothing added: the directory has no more names.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()>;

    /// An exclusive upper bound on all cookies that names of this directory have or had, so that
    /// none is reused. 0 if it never had a name.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when it cannot be read.
    fn end_cookie(&self, dir: Ino) -> Result<u64>;

    /// The first run of bytes of a regular file at or after `offset` that takes space. `None`: only
    /// holes follow. Allocated unwritten bytes count, also beyond the file's end. The run may be
    /// shorter than the contiguous space. A store that does not distinguish unwritten space reports
    /// everything as written.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when the map cannot be read.
    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>>;

    /// Reads bytes of a regular file; holes read as zeros.
    ///
    /// The file may change meanwhile. The bytes that change are undefined, and the call may fail
    /// because of the change: the caller discards both. All other bytes are right.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Total and used space.
    ///
    /// # Errors
    /// `EIO` when it cannot be read.
    fn space(&self) -> Result<SpaceReport>;

    /// Returns when all changes up to `upto` are durable; `None` means all changes accepted so far.
    ///
    /// # Errors
    /// When they could not be made durable: then no later call succeeds for what was accepted
    /// before.
    fn commit(&self, upto: Option<Lsn>) -> Result<()>;

    /// A caller opens an inode, with `writes` a regular file for writing. The core asks for reading
    /// only if others may change the store. `true`: the opening ends with a
    /// [`close_inode`](Self::close_inode). Until then the number means the same inode, whatever
    /// happens to its names, and a file that is open for writing can be written, whatever happens
    /// to its permissions. A store that the core alone changes needs none of it.
    ///
    /// # Errors
    /// `ESTALE`: the inode has gone. For writing also `EACCES`, `EROFS`; `ENFILE` if too many are
    /// open.
    fn open_inode(&self, caller: &Caller, ino: Ino, writes: bool) -> Result<bool> {
        let _ = (caller, ino, writes);
        Ok(false)
    }

    /// Ends one opening.
    fn close_inode(&self, ino: Ino, writes: bool) {
        let _ = (ino, writes);
    }

    /// A descriptor of a file that is [open](Self::open_inode) for writing is closed.
    ///
    /// # Errors
    /// Those of work that the store deferred.
    fn flush_inode(&self, ino: Ino) -> Result<()> {
        let _ = ino;
        Ok(())
    }

    /// Makes an inode durable; `data_only`: the data, and the metadata that reading it back needs.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit).
    fn sync_inode(&self, ino: Ino, data_only: bool) -> Result<()> {
        let _ = (ino, data_only);
        self.commit(None)
    }

    /// The ability to iterate over all inodes by number. Without it the attributes of all inodes
    /// are not available (`EOPNOTSUPP`), and inodes are loaded one by one.
    fn walk(&self) -> Option<&dyn WalkInodes> {
        None
    }

    /// The ability to keep pages of the page cache. Without it the store copies what is written.
    fn pages(&self) -> Option<&dyn SharedPages> {
        None
    }

    /// The ability to find inodes by names, in a store that others may change. Without it the core
    /// allocates inode numbers, and what it caches stays valid.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
}
