//! Stat-ahead: inodes that a program is likely to ask for next come along with the one that it asks for.
//!
//! It is looked for at *demand loads* alone: where a name leads to an inode that is not in memory. What is in
//! memory is looked up without a word to anything here; whether it was of use that it was brought is told by the mark *ahead*
//! of an inode, which the first use of it takes away (`inode/aging.rs`).
//!
//! [`Scans`] has the demand loads of each directory, and says how many of its names are to come along, in which order; the
//! rules are in `policy.rs`, after Lustre's stat-ahead (`ll_statahead`). [`Walks`] has the directories of a parent that are
//! listed one after the other. A load by number alone brings one inode: the store reads ahead in its own order.

mod policy;
mod scan;
mod table;
mod walk;

pub(crate) use policy::{BATCH, Millis};
pub(crate) use scan::{Advice, Brought, By, Demand, Order, Reach, is_hidden, place_of};
pub(crate) use table::Scans;
pub(crate) use walk::{WalkAdvice, WalkOrder, Walks};

use holdfast_sync::ShardedCounter;

/// What a file system knows of the order in which inodes are asked for.
#[derive(Default)]
pub(crate) struct Readahead {
    pub(crate) scans: Scans,
    /// Inodes that were brought before anybody asked for them.
    pub(crate) issued: ShardedCounter,
    /// Those of them that left memory before anybody did.
    pub(crate) wasted: ShardedCounter,
}
