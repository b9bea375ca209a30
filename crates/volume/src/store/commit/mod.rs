//! Making a prefix of the journal durable.
//!
//! A commit is run by a caller (`fsync`, `sync`), by the timer, or because the journal fills up.
//!
//! Owns the timers, and the progress that waiters see.

#[expect(clippy::module_inception, reason = "the commit itself")]
mod commit;
mod progress;
mod timer;

pub(super) use commit::{Frozen, extent_of, freeze, let_go, make_durable, rests, write_behind};
pub(super) use progress::{HELP_MAX, Progress};
pub use timer::Promptness;
pub(super) use timer::{commits_every, writes_every};
