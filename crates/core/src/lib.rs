//! Holdfast's core: POSIX once, over any store.
//!
//! [`FileSystem`] is a complete file system in memory: names, attributes, content, locks,
//! watches, permissions. A [`Store`] stands behind it: it loads what is not in memory and makes
//! changes durable. Front ends (the library, FUSE) stand before it and add no rule of their own.
//!
//! *Callers.* Every operation that checks permissions takes a [`types::Caller`].
//!
//! *Nodes.*
//! Operations take [`Node`]s, counted references to inodes; a name is looked up in a node, a path
//! is walked from one.
//!
//! *Invariants.* An inode is in memory at most once, found by its number. It stays while it has a
//! name or a reference. Numbers are never reused.
//!
//! *Locking.* `docs/locking.md` defines the lock order.

#[macro_use]
extern crate holdfast_types as _;

mod acl;

mod attributes;
mod bulkstat;
mod by_number;
mod census;
mod clock;
mod coherence;
mod core;
mod directory;
mod events;
mod evictions;
mod failure;
mod file_system;
mod inode;
mod inodes;
pub mod interrupt;
mod io;
#[cfg(test)]
mod late_tests;
mod lazytime;
mod lifecycle;
mod listing;
mod load;
mod lock_operations;
mod locks;
mod log_order;
mod losses;
mod namespace;
mod node;
mod notify;
mod numbers;
mod observer;
mod open;
mod open_file;
mod options;
mod path;
mod permission;
mod policy;
mod prefetch;
mod primitive;
mod quota;
mod quota_operations;
mod readahead;
mod readdir;
mod reclaim;
mod registry;
mod rename_lock;
mod shared;
mod space;
mod statistics;
pub mod store;
mod through;
mod transaction;
mod unmapped;
mod watch;
mod xattr;

pub use crate::listing::Listing;
pub use crate::open_file::OpenFile;
pub use bulkstat::Bulkstat;
pub use census::InodeCensus;
pub use file_system::FileSystem;
pub use holdfast_cache::{Memory, frame, memory as budget, reclaim as shrinkers};
pub use holdfast_types as types;
pub use inodes::{Dropped, InodeWalk, Visit};
pub use lifecycle::Shutdown;
pub use locks::{Cancel, HeldLock, LockKind, LockOwner, LockRange, LockSpace};
pub use node::Node;
pub use observer::Observer;
pub use options::{AtimePolicy, Options, Stats};
pub use path::Resolved;
pub use prefetch::Prefetch;
pub use quota::{QuotaGrace, QuotaKind, QuotaLimit, QuotaLimits, QuotaRecord, QuotaUsage};
pub use store::{DirEntry, MemoryLimits, MemoryStore, Store};
pub use watch::{Event, EventMask, Watch};
