//! The contract between the core and what stands behind it.
//!
//! A store loads what is not cached and makes changes durable. It never sees a path, a permission
//! or a lock: those are the core's. The core never sees a block.
//!
//! *Reading* is [`Store`]: inodes by number, names by directory, bytes by file. It may wait for a
//! device and changes nothing.
//!
//! *Changing* goes one of two ways, which [`Store::writes`] selects once. With [`Behind`], the core
//! reserves, changes memory, and hands over ordered batches of typed [changes](Change), one batch
//! an operation. With [`Through`], the core asks the store for an [operation](Operation), and
//! changes memory by the answer. The paragraphs on order, atomicity, refusal and failure are about
//! [`Behind`].
//!
//! *Abilities* are what a store may have beyond that: [`WalkInodes`], [`SharedPages`], [`Shared`].
//! The store answers `Some` for those it has.
//!
//! *Order.* A batch is handed over under the locks of the objects that it changes. So two batches
//! that touch one object arrive in the order in which the core performed them. Batches of unrelated
//! objects may arrive concurrently, from several threads.
//!
//! *Atomicity.* A batch is one operation. After a crash a store shows all of it or nothing, and
//! never a later batch without an earlier one on the same object.
//!
//! *Refusal.* The core calls [`Behind::reserve`] before it changes anything: `ENOSPC`, `EDQUOT` and
//! `ENOMEM` come from there. Reserved changes cannot be refused.
//!
//! *Failure.* If [`Behind::apply`] fails all the same (the device did), memory is already ahead of
//! the store: the core stops all further changes (`EROFS`). A store that loses accepted changes
//! closes its [`Failure`] before any commit of later changes can succeed, and the core reports that
//! once to each open file.
//!
//! The core defines the meaning of every operation, permissions, times, and which inodes are in
//! use. Wrappers in `testkit` add faults, latency and recording.

mod abilities;
mod behind;
mod change;
mod contract;
mod failure;
pub(crate) mod grant;
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

pub use crate::store::grant::Grant;
pub use abilities::{PageOf, SharedPage, SharedPages, ShownPage, WalkInodes};
pub use behind::{Behind, Lsn, Writes};
pub use change::Change;
pub(crate) use change::Scope;
pub use contract::{Guarantees, Store};
pub use failure::Failure;
pub use intent::{Class, Intent, kept_bytes};
pub use memory::{MemoryLimits, MemoryStore};
pub use name_run::{DirEntry, NameRun};
pub(crate) use nothing_behind::NothingBehind;
pub use record::{EntryRecord, InodeRecord, Rest, XattrList};
pub use reservation::Reservation;
pub use shared::{Changes, Coherence, Shared, WholeDirectory};
pub use space::{Space, SpaceReport, SpaceRun};
pub use stored_space::StoredSpace;
pub use through::{Attributes, Done, New, Operation, Through, Touched, Version};
