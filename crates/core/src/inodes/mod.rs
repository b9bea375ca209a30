//! All inodes in memory, one after the other: who needs that, and how it is done.
//!
//! There is no list of them: the index is walked by number, 64 inodes at a time, and nothing is
//! held between two batches. So a walk can block, stop, go on later, or be split into ranges for
//! several threads (the kernel's own list of all inodes under one lock is what this replaces: D.
//! Chinner's series of October 2024).
//!
//! Two iterators, with two contracts:
//!
//! - the *safe* one ([`InodeWalk`]): the visitor gets a counted use of a live inode, may block and
//!   may call anything. An inode that is there throughout is visited exactly once.
//! - the *unsafe* one (`Core::scan_inodes`; Rust's word is not meant, nothing can go wrong with
//!   memory): the visitor gets an inode that exists, in any state, and must not block. Only for
//!   this crate; whoever uses it says why.

mod evict;
mod shards;
mod walk;

pub use evict::Dropped;
pub(crate) use evict::Ending;
pub(crate) use walk::Take;
pub use walk::{InodeWalk, Visit};
