//! Making a prefix of the journal durable.
//!
//! A commit is run by a caller (`fsync`, `sync`), by the timer, or because the journal fills up.
//!
//! Owns the volume's threads, their timers, and the progress that waiters see.

#[expect(clippy::module_inception, reason = "the commit itself")]
mod commit;
pub(in crate::store) mod progress;
pub(in crate::store) mod timer;
pub(in crate::store) mod worker;

pub(in crate::store) use commit::{Frozen, extent_of};
