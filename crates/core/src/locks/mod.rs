//! File locks: record locks (fcntl(2)), open-file-description locks, and flock(2).
//!
//! An inode that was ever locked owns an [`InodeLocks`]; a file system owns one [`LockGraph`], the
//! waits-for graph over all its inodes.
//!
//! *Invariants.*
//! - Locks of different owners on a common byte are all read locks. POSIX and OFD locks share one
//!   table and exclude each other; flock(2) locks are independent of both, as on Linux.
//! - The locks of one owner are disjoint and maximal: neighbours of one kind are one lock.
//! - A free lock is granted at once to a caller that does not wait (POSIX requires it). Of several
//!   waiters, the oldest gets a freed lock first.
//! - The waits-for graph holds the edges of every POSIX waiter as of the last change of its inode's
//!   table, and has no cycle.
//!
//! *Locking.* inode's lock state > graph > nothing; inode's lock state > [`Cancel`] > nothing;
//! inode's lock state > a waiter's slot > nothing. A waiting thread sleeps on its slot alone, so
//! callers must hold no lock of their own across [`InodeLocks::set`] with a `wait`.

mod cancel;
mod graph;
mod inode;
mod lock;
mod queue;
mod slot;
mod spans;
mod table;

#[cfg(test)]
mod tests;

pub use cancel::Cancel;
pub(crate) use graph::LockGraph;
pub(crate) use inode::InodeLocks;
pub(crate) use lock::LockRequest;
pub use lock::{HeldLock, LockKind, LockOwner, LockRange, LockSpace};
