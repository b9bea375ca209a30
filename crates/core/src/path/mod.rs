//! Paths: one walk for every call that takes one.
//!
//! A relative path starts at a directory that the caller holds, an absolute one at this file
//! system's root; nothing leads out of it. Symbolic links on the way are followed, at most
//! [`SYMLOOP_MAX`](crate::types::SYMLOOP_MAX) in one walk.

mod open;
mod operations;
mod rcu_walk;
mod walk;

pub use walk::Resolved;
