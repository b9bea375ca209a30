//! The volume as the core's store.
//!
//! Changes are recorded in a *memtable* and in the journal. A commit makes the journal durable; a
//! checkpoint merges the memtable into the trees. Reads consult the memtables, then the trees.
//!
//! *Invariants.* The memtables over the trees hold the result of every batch applied so far. The
//! journal from the superblock's position on, replayed over that superblock's trees, yields the
//! state of the last commit. An error that leaves any doubt stops all writing.
//!
//! *Locking.* In this order: the journal's lock (a commit), the freeze barrier, a memtable shard,
//! space. Every change passes the barrier; a commit point and the end of a checkpoint close it.
//! None of them is held over a device read: a reader works with a snapshot of the layers, and a
//! change prefetches what it needs before it passes the barrier.

mod apply;
mod behind;
mod budget_member;
mod checkpoint;
mod commit;
mod contract;
mod counters;
mod error_callback;
mod extents;
mod file;
mod format;
mod high_water;
mod inner;
mod inspect;
mod load;
mod memtable;
mod open;
mod orphans;
mod replay;
mod reservation;
mod resize;
mod stop;
mod survey;
mod writeback;

pub(crate) use checkpoint::records;
pub use commit::timer::Promptness;
pub use counters::WorkCounts;
pub use extents::FileExtent;
pub use file::content::INLINE_MAX;
pub use format::{BLOCKS_MIN, FormatOptions, Needs, format, needs};
pub use inspect::{Activity, Info, superblock};
pub use load::metered::DeviceUse;
pub(crate) use memtable::hash;
pub use open::OpenOptions;
pub(crate) use open::{may_change, newest_superblock};

use std::sync::Arc;

use commit::worker::Worker;
use inner::Inner;

/// An open volume.
///
/// It commits every few seconds, and checkpoints when the journal fills. A store that is dropped
/// leaves the volume as after a crash; [`VolumeStore::close`] closes it cleanly.
#[derive(Debug)]
pub struct VolumeStore {
    inner: Arc<Inner>,
    worker: Worker,
}
