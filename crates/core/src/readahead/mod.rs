//! Stat-ahead: inodes that a program is likely to use next are loaded together with the one that it
//! asks for.
//!
//! Only *demand loads* are observed: lookups of inodes that are not in memory. Lookups in memory do
//! not run this code. The mark *ahead* of an inode, which its first use clears, tells whether its
//! load was useful (`inode/aging.rs`).
//!
//! [`Scans`] records the demand loads of each directory, and decides how many of its names to load,
//! in which order. The rules are in `policy.rs`, after Lustre's stat-ahead (`ll_statahead`).
//! [`Walks`] records the directories of a parent that are listed one after the other. A load by
//! number alone loads one inode: the store reads ahead in its own order.

mod policy;
mod scan;
mod table;
mod walk;

pub(crate) use policy::{BATCH, Millis};
pub(crate) use scan::{Advice, Brought, By, Demand, Order, Reach, is_hidden, place_of};
pub(crate) use table::Scans;
pub(crate) use walk::{WalkAdvice, WalkOrder, Walks};

use holdfast_sync::ShardedCounter;

/// The read-ahead state of a file system.
#[derive(Default)]
pub(crate) struct Readahead {
    pub(crate) scans: Scans,
    /// Inodes that were read ahead.
    pub(crate) issued: ShardedCounter,
    /// Those of them that were evicted before their first use.
    pub(crate) wasted: ShardedCounter,
}
