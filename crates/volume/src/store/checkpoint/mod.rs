//! Checkpoints: the memtable is merged into the trees.
//!
//! One sorted merge a tree, into new nodes; the superblock then switches to all of them at once.
//!
//! Owns the new nodes until the checkpoint ends, and the list of nodes that it frees.

#[expect(clippy::module_inception, reason = "the checkpoint itself")]
mod checkpoint;
mod merge;
mod nodes;
pub(crate) mod records;
