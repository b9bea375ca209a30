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
mod node_counts;
mod open;
mod orphans;
mod probe;
mod replay;
mod reservation;
mod reserve;
mod resize;
mod stop;
mod survey;
mod throttle;
mod volume_store;
mod worker;
mod writeback;

pub(crate) use checkpoint::Held;
#[cfg(test)]
pub(crate) use checkpoint::Value;
pub use commit::Promptness;
pub use counters::WorkCounts;
pub use extents::FileExtent;
pub use file::INLINE_MAX;
pub use format::{FormatOptions, Needs, format, needs};
pub use inspect::{Activity, Info};
pub use load::DeviceUse;
pub(crate) use memtable::NameHasher;
pub use open::OpenOptions;
pub(crate) use probe::may_change;
pub use probe::{BLOCKS_MIN, newest_superblock};
pub use volume_store::VolumeStore;

use inner::Inner;
