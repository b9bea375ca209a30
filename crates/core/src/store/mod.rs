//! The contract between the core and what stands behind it.
//!
//! A store loads what is not cached and makes changes durable. It never sees a path, a permission
//! or a lock: those are the core's. The core never sees a block.
//!
//! *Reading* is [`Store`]: inodes by number, names by directory, bytes by file. It may wait for a device and changes
//! nothing.
//!
//! *Changing* goes one of two ways, which [`Store::writes`] names once. [`Behind`]: the core asks for room, changes memory, and
//! hands over ordered batches of typed [changes](Change), one batch an operation. [`Through`]: the core asks the store to do
//! an [operation](Operation), and takes in what came of it. What follows on order, atomicity, refusal and failure is about the first.
//!
//! *Abilities* are what a store may have beyond that: it answers `Some`, and the core does without where it does not.
//! [`WalkInodes`], [`SharedPages`], [`Shared`].
//!
//! *Order.* A batch is handed over while the locks of the objects it changes are held: two
//! batches that touch one object arrive in the order in which the core performed them. Batches
//! of unrelated objects may arrive at once, from several threads.
//!
//! *Atomicity.* A batch is one operation. After a crash a store shows all of it or nothing, and
//! never a later batch without an earlier one on the same object.
//!
//! *Refusal.* What a store may lack it is asked for first ([`Behind::reserve`]), when nothing has happened
//! yet: `ENOSPC`, `EDQUOT` and `ENOMEM` come from there. What was reserved for cannot be refused.
//!
//! *Failure.* When [`Behind::apply`] fails all the same (the device did), memory is already ahead of the
//! store: the core stops all further changes (`EROFS`). A store that loses what it has accepted closes its
//! [`Failure`] before anybody could commit behind that, and the core tells each open file once.
//!
//! What a store leaves to the core: the meaning of every operation, permissions, times, which
//! inodes are in use. What it leaves to wrappers (in `testkit`): faults, latency, recording.

mod abilities;
mod behind;
mod change;
mod failure;
mod intent;
mod memory;
mod name_run;
mod nothing_behind;
mod record;
mod reservation;
mod shared;
mod space;
mod stored_space;
mod through;

pub use abilities::{PageOf, SharedPage, SharedPages, ShownPage, WalkInodes};
pub use behind::{Behind, Lsn, Writes};
pub use change::Change;
pub use failure::Failure;
pub use intent::{Class, Intent, kept_bytes};
pub use memory::{MemoryLimits, MemoryStore};
pub use name_run::{DirEntry, NameRun};
pub(crate) use nothing_behind::NothingBehind;
pub use record::{EntryRecord, InodeRecord, Rest, XattrList};
pub use reservation::{Grant, Reservation};
pub use shared::{Changes, Coherence, Shared, WholeDirectory};
pub use space::{Space, SpaceReport, SpaceRun};
pub use stored_space::StoredSpace;
pub use through::{Attributes, Done, New, Operation, Through, Touched, Version};

use crate::types::{Ino, Result};
use holdfast_cache::Memory;
use std::sync::Arc;

/// What a store promises, asked once when a file system is made over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// Nothing stands behind the core: all it holds is all there is. Then [`Behind::apply`] is
    /// never called and nothing is ever loaded.
    pub pinned: bool,
    /// Calls may wait for a device: a front end keeps them off threads that must not.
    pub blocks: bool,
    /// Files up to this length take no page of their own; 0, if all do. One that grows beyond it needs a page for
    /// what it had.
    pub small: u64,
    /// Space comes back with the changes that free it: [`Behind::release`] need not hear of pages that were
    /// never loaded, which would have to be counted first.
    pub frees: bool,
}

/// What stands behind the core: how it is read. See the module's text for order, atomicity and failure.
pub trait Store: Send + Sync + 'static {
    /// What this store promises. Constant over its life.
    fn guarantees(&self) -> Guarantees;

    /// How this store is changed. Constant over its life: the core asks once.
    fn writes(self: Arc<Self>) -> Writes;

    /// Where this store says that it failed. The core, which asks once, closes it too when [`Behind::apply`] fails.
    fn failure(&self) -> Arc<Failure> {
        Arc::default()
    }

    /// The memory that the file system and its store share from now on. A store that keeps what it could write, or read
    /// again, joins it. Told once.
    fn join(&self, memory: &Arc<Memory>) {
        let _ = memory;
    }

    /// Loads inodes by number, in any order; numbers that do not exist are left out.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()>;

    /// What these inodes have beside their records, in this order: the targets of symbolic links, and the
    /// extended attributes of those that may have any.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when that of any of them cannot be read.
    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()>;

    /// Looks names of a directory up, without loading all of them: adds an answer for each, in this order, with the
    /// inode that the name leads to. `None`: the name is not there. A name without an inode: that cannot be read, or is
    /// not there, as a load of it tells; the name is there all the same.
    ///
    /// While a name comes or goes, any answer is right for it: the caller knows whether that was so, and asks again.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when any of the names cannot be read.
    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()>;

    /// Adds a run of at most `max` names with cookies greater than `after`, in cookie order. Nothing
    /// added: the directory ends there.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()>;

    /// Above all cookies that names of this directory have or had: so that none comes back. 0, if it never had a name.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when it cannot be read.
    fn end_cookie(&self, dir: Ino) -> Result<u64>;

    /// The first run of bytes of a regular file at or after `offset` that takes space: also what was allocated and not
    /// written, in front of the file's end and behind it. `None`: only holes follow. The run may be shorter than what
    /// takes space is. Of a store that does not tell them apart, everything is written.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when the map cannot be read.
    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>>;

    /// Reads bytes of a regular file; holes read as zeros.
    ///
    /// The file may change meanwhile. Of what changes the bytes may be any, and the call may fail
    /// for that reason: the caller discards them then. All others are right.
    ///
    /// # Errors
    /// `EIO` or `EUCLEAN` when they cannot be read.
    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Space in all and in use.
    ///
    /// # Errors
    /// `EIO` when it cannot be told.
    fn space(&self) -> Result<SpaceReport>;

    /// Returns when all changes up to `upto` are durable; `None` means all accepted so far.
    ///
    /// # Errors
    /// When they could not be made durable: then no later call succeeds for what was accepted before.
    fn commit(&self, upto: Option<Lsn>) -> Result<()>;

    /// Can it go over all inodes by number? Without that nobody gets attributes of all inodes (`EOPNOTSUPP`), and
    /// inodes are loaded one by one.
    fn walk(&self) -> Option<&dyn WalkInodes> {
        None
    }

    /// Can it keep pages of the page cache? Without that it is shown what was written, and copies it.
    fn pages(&self) -> Option<&dyn SharedPages> {
        None
    }

    /// Does it find inodes by names, and may others change it? Without that the core deals numbers, and what it knows is so.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
}
