//! Watches: the events of inotify(7), within the process.
//!
//! A [`Watch`] is on one inode and has its own queue. Operations report events to the
//! [`WatchRegistry`], which copies them into the queues of matching watches. There is no callback.
//!
//! *Invariants.*
//! - A queue is bounded. An event that finds it full is dropped, and one `Q_OVERFLOW` reports that.
//! - After `IGNORED` nothing follows.
//! - Without watches, reporting reads only cache lines that are never written.
//!
//! *Locking.* a shard of the registry > one queue > nothing. Both are held only to copy an event,
//! so an operation may report under its own locks, and receivers hold neither.

mod event;
mod queue;
mod registry;

#[cfg(test)]
mod tests;

pub use event::{Event, EventMask};
pub use registry::Watch;
pub(crate) use registry::WatchRegistry;
