//! Path resolution: one walk for every call that takes a path.
//!
//! A relative path starts at a directory of the caller, an absolute one at this file system's root;
//! no path leads out of the file system. Symbolic links are followed, at most
//! [`SYMLOOP_MAX`](crate::types::SYMLOOP_MAX) in one walk.

mod open;
mod operations;
mod rcu_walk;
mod walk;

pub use walk::Resolved;
