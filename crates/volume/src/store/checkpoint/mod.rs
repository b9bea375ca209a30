//! The memtable merged into the trees.
//!
//! One sorted merge a tree, into nodes that are new; the superblock then switches to all of them at once.
//!
//! Owns the nodes that a checkpoint writes until it has ended, and what it frees.

#[expect(clippy::module_inception, reason = "the checkpoint itself")]
mod checkpoint;
mod merge;
mod nodes;
pub(crate) mod records;
