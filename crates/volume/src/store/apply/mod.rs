//! Applying one operation's changes, in memory and in the journal.
//!
//! A batch of the core is a *transaction*: it is visible and journalled as a whole or not at all.
//!
//! This module owns no state. A batch changes the [memtable](super::memtable). What it needs from
//! the device is prefetched before it passes the barrier, and its space was
//! [reserved](super::reservation).

#[expect(clippy::module_inception, reason = "the application itself")]
mod apply;
mod evict;
mod prefetched;
mod transaction;

pub(super) use apply::apply;
pub(super) use evict::without_last_attributes;
pub(super) use transaction::{Applier, is_of_content};
