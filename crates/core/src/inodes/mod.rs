//! Walks over all inodes in memory.
//!
//! There is no list of inodes: the index is walked by number, 64 inodes at a time, and nothing is
//! held between two batches. So a walk can block, stop, continue later, or be split into ranges for
//! several threads. Linux's list of all inodes under one lock was criticized for lacking this (D.
//! Chinner's series of October 2024).
//!
//! Two iterators, with two contracts:
//!
//! - the *checked* one ([`InodeWalk`]): the visitor gets a reference to a live inode, may block and
//!   may call anything. An inode that is in memory throughout is visited exactly once.
//! - the *unchecked* one (`scan_inodes`): the visitor gets an inode in any state, without a
//!   reference, and must not block. Each caller says why it needs it.

pub(crate) mod dropped;
pub(crate) mod evict;
pub(crate) mod find;
pub(crate) mod free;
pub(crate) mod inode_walk;
pub(crate) mod shards;
pub(crate) mod walk;

pub use dropped::Dropped;
pub(crate) use free::FreeingOrphan;
pub(crate) use inode_walk::Take;
pub use inode_walk::{InodeWalk, Visit};
