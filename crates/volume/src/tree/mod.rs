//! Trees: copy-on-write nodes of delta-coded records.
//!
//! A [`Tree`] is everything reachable from one [`Root`]. Nodes are never changed: a [`Tree::merge`]
//! writes new ones beside them and returns a new root. Readers of an old root are not disturbed
//! until its owner reuses the blocks of freed nodes. Four kinds of tree differ only in their
//! [`Record`]s. `docs/format.md` has every byte.
//!
//! *Invariants.* All leaves have level 0 and are equally far from the root; a child's level is its
//! parent's minus 1. The key beside a pointer is the first key below it. Every pointer carries the
//! generation that wrote the node, and the node says the same.
//!
//! *Locking.* None but the shards of the [`NodeCache`], which are leaves. The owner ensures one
//! merge at a time per tree.
//!
//! Left to the owner: where space comes from ([`NodeSpace`]), when freed nodes may be reused, where
//! roots are stored, what records mean.

mod cache;
mod check;
mod cursor;
mod data;
mod entries;
mod error;
mod hashes;
mod inodes;
mod leaf;
mod lookup;
mod merge;
mod node;
mod node_size;
mod output;
mod pointer;
mod readahead_states;
mod record;
mod run;
#[cfg(test)]
mod tests;
mod view;

pub use crate::varint::Reader;
pub use cache::{CacheCounts, NodeCache, NodeSource};
pub use check::{Finding, Inspect};
pub use cursor::Cursor;
pub use data::{Contents, Data, DataContext, DataKey, DataKind, Extent, INLINE_MAX, XattrValue};
pub use entries::{Entries, Entry, EntryContext, EntryKey};
pub use error::{Defect, Error, Result};
pub use hashes::{HashContext, HashKey, Hashes};
pub use inodes::{Inode, InodeContext, Inodes};
pub use lookup::Tree;
pub use merge::{Merge, Merged};
pub use node::{Node, Origin};
pub use node_size::NodeSize;
pub use output::NodeSpace;
pub use pointer::{ADDRESS_BITS, LEVEL_MAX, NODE_BLOCKS_MAX, Pointer, Root};
pub use record::{Key, Kind, Record};
pub use view::UncheckedHeader;
