//! The memtables: changes since the last checkpoint, over the trees.
//!
//! A commit freezes nothing. A checkpoint seals the active memtable, puts an empty one over it, and
//! merges the sealed one into the trees. All three are the *layers*.
//!
//! Owns the layers and the [barrier] around them.

pub(in crate::store) mod barrier;
pub(crate) mod hash;
pub(in crate::store) mod layers;
#[expect(clippy::module_inception, reason = "the memtable itself")]
mod memtable;
pub(in crate::store) mod names;
mod object;
mod shard;
mod tree_cost;
pub(in crate::store) mod window;

pub(in crate::store) use memtable::Memtable;
pub(in crate::store) use object::{Object, Rest};
pub(in crate::store) use shard::Shard;
pub(in crate::store) use tree_cost::TreeCost;

/// The number of the only subvolume.
pub(in crate::store) const SUBVOLUME: u64 = 1;
