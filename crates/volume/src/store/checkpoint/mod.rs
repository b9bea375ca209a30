//! Checkpoints: the memtable is merged into the trees.
//!
//! One sorted merge a tree, into new nodes; the superblock then switches to all of them at once.
//!
//! Owns the new nodes until the checkpoint ends, and the list of nodes that it frees.

#[expect(clippy::module_inception, reason = "the checkpoint itself")]
mod checkpoint;
mod merge;
mod nodes;
mod records;

pub(super) use checkpoint::{checkpoint, merge_frozen, write_superblock};
pub(crate) use records::Held;
#[cfg(test)]
pub(crate) use records::Value;
