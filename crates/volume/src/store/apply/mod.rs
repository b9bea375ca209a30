//! One operation's changes, made in memory and in the journal.
//!
//! A batch of the core is a *transaction*: all of it is seen, or none, and so it is journalled.
//!
//! Owns nothing: what a batch changes is the [memtable](super::memtable)'s. What it needs of the device is read before
//! the barrier is passed, and what it needs of space was [reserved](super::reservation).

pub(in crate::store) mod evict;
pub(in crate::store) mod prefetched;
pub(in crate::store) mod transaction;
