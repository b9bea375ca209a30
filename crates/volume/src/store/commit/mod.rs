//! Making a prefix of what was journalled durable.
//!
//! By request (`fsync`, `sync`), in time, and before the journal is full: by the thread that asks, or by the volume's own.
//!
//! Owns the volume's thread, its timers, and what waiters are told of its progress.

#[expect(clippy::module_inception, reason = "the commit itself")]
mod commit;
pub(in crate::store) mod progress;
pub(in crate::store) mod timer;
pub(in crate::store) mod worker;

pub(in crate::store) use commit::{Frozen, extent_of};
