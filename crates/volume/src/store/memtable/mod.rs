//! What changed since the last checkpoint, in memory, over the trees.
//!
//! A commit freezes nothing of it; a checkpoint seals the active memtable, puts an empty one over it, and merges the
//! sealed one into the trees. All three are the *layers*.
//!
//! Owns the layers and the [barrier] round them: every change passes it, and a cut closes it.

pub(in crate::store) mod barrier;
mod growth;
pub(crate) mod hash;
pub(in crate::store) mod layers;
#[expect(clippy::module_inception, reason = "the memtable itself")]
mod memtable;
pub(in crate::store) mod names;
mod object;
mod objects;
mod shard;
mod tombstones;
pub(in crate::store) mod window;

pub(in crate::store) use growth::Growth;
pub(in crate::store) use memtable::Memtable;
pub(in crate::store) use object::{Object, Rest};
pub(in crate::store) use shard::Shard;

/// The number of the only realm.
pub(in crate::store) const SUBVOLUME: u64 = 1;
