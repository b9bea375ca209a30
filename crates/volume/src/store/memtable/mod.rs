//! The memtables: changes since the last checkpoint, over the trees.
//!
//! A commit freezes nothing. A checkpoint seals the active memtable, puts an empty one over it, and
//! merges the sealed one into the trees. All three are the *layers*.
//!
//! Owns the layers and the [barrier] around them.

mod barrier;
mod hash;
mod layers;
#[expect(clippy::module_inception, reason = "the memtable itself")]
mod memtable;
mod names;
mod object;
mod shard;
mod tree_cost;
mod window;

pub(super) use barrier::{FreezeBarrier, Snapshot};
pub(crate) use hash::NameHasher;
pub(super) use layers::{Known, Layers, Roots};
pub(super) use memtable::Memtable;
pub(super) use names::{Name, Names};
pub(super) use object::{Object, Rest};
pub(super) use shard::Shard;
pub(super) use tree_cost::TreeCost;
pub(super) use window::{LayeredNames, Window};

/// The number of the only subvolume.
pub(super) const SUBVOLUME: u64 = 1;
