//! Watches: what inotify(7) tells of an inode, told within the process.
//!
//! A [`Watch`] is on one inode and has its own queue. Operations report what they did to the
//! [`WatchRegistry`]; it copies the event into the queues of those who asked, and nothing else
//! happens: there is no callback.
//!
//! *Invariants.*
//! - A queue is bounded. An event that finds it full is lost, and one `Q_OVERFLOW` says so.
//! - After `IGNORED` nothing follows.
//! - Where nobody watches, reporting reads lines that nobody writes.
//!
//! *Locking.* a shard of the registry > one queue > nothing. Both are held for copying an event
//! only, so an operation may report under locks of its own, and receivers hold neither.

mod event;
mod queue;
mod registry;

#[cfg(test)]
mod tests;

pub use event::{Event, EventMask};
pub use registry::Watch;
pub(crate) use registry::WatchRegistry;
