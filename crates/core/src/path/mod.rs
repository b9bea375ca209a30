//! Path resolution: one walk for every call that takes a path.
//!
//! A relative path starts at a directory of the caller, an absolute one at this file system's root;
//! no path leads out of the file system. Symbolic links are followed, at most
//! [`SYMLOOP_MAX`](crate::types::SYMLOOP_MAX) in one walk.

pub(crate) mod open;
pub(crate) mod operations;
pub(crate) mod rcu_walk;
pub(crate) mod walk;

pub use walk::Resolved;
