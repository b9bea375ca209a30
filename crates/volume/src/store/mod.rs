//! The volume as the core's store.
//!
//! What changes is kept in an *overlay* in memory and in the journal; a commit makes the journal
//! durable, a checkpoint folds the overlay into the trees. Reads look into the overlays, then into the
//! trees.
//!
//! *Invariants.* The overlays over the trees are what all batches so far made. The journal from the
//! superblock's position on, replayed over its trees, makes what was committed last. An error that
//! leaves any doubt stops all writing.
//!
//! *Locking.* The journal's own lock (a commit), the gate, a shard of an overlay, space. Every change passes the gate;
//! a commit's cut and the end of a checkpoint close it. The device is read with none of them: readers work with a
//! snapshot of the layers, and what a change needs is read before it passes.

mod apply;
mod behind;
mod checkpoint;
mod commit;
mod contract;
mod error_callback;
mod extents;
mod file;
mod format;
mod high_water;
mod inner;
mod inspect;
mod load;
mod max_ino_seen;
mod memtable;
mod open;
mod orphans;
mod replay;
mod reservation;
mod resize;
mod stop;
mod survey;
mod tally;
mod writeback;

pub(crate) use checkpoint::records;
pub use commit::timer::Promptness;
pub use extents::FileExtent;
pub use file::content::INLINE_MAX;
pub use format::{BLOCKS_MIN, FormatOptions, Needs, format, needs};
pub use inspect::{Activity, Info, superblock};
pub use load::metered::{DeviceUse, Transfers};
pub(crate) use memtable::hash;
pub use open::OpenOptions;
pub(crate) use open::newest_superblock;
pub use tally::Tallied;

use std::sync::Arc;

use commit::worker::Worker;
use inner::Inner;

/// An open volume.
///
/// It commits every few seconds, and folds when the journal fills. Dropped it is as after a crash;
/// [`VolumeStore::close`] ends it cleanly.
#[derive(Debug)]
pub struct VolumeStore {
    inner: Arc<Inner>,
    worker: Worker,
}
