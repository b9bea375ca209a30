//! Applying one operation's changes, in memory and in the journal.
//!
//! A batch of the core is a *transaction*: it is visible and journalled as a whole or not at all.
//!
//! This module owns no state. A batch changes the [memtable](super::memtable). What it needs from
//! the device is prefetched before it passes the barrier, and its space was
//! [reserved](super::reservation).

pub(in crate::store) mod evict;
pub(in crate::store) mod prefetched;
pub(in crate::store) mod transaction;
