//! A mounted file system: from mount to the last request.
//!
//! From the bottom up: the state that all threads share ([`service`]), notifications
//! ([`notifier`]), the threads ([`pool`], [`worker`], [`watch`]), the requests ([`handler`]), the
//! two transports, and the session ([`live`], [`start`]). Each imports only from those before it.
//!
//! # Invariants
//! [`Session::mount`] returns a live mount, or undoes all that it did. The session's threads end
//! with the connection, regardless of how it was unmounted. [`Operations::destroy`] is called after
//! them. If the kernel sends DESTROY, the call precedes the answer, which umount(2) waits for.
//!
//! [`Operations::destroy`]: crate::Operations::destroy

mod backing;
mod config;
mod connection;
mod counters;
mod encode;
mod errors;
pub(crate) mod handler;
mod handshake;
mod info;
mod live;
mod liveness;
mod mapped;
mod negotiate;
mod notification;
mod notifier;
mod policy;
pub(crate) mod pool;
mod queues;
mod resend;
mod revoke;
pub(crate) mod service;
mod start;
mod sys;
mod timing;
mod wakeup;
mod watch;
pub(crate) mod worker;

pub use backing::BackingFiles;
pub use config::{Config, KeptContent, ListingChoice, Passthrough, TransportChoice};
pub use counters::Totals;
pub use errors::ErrorCounts;
pub use info::{Info, Transport};
pub use live::Session;
pub use liveness::Liveness;
pub use negotiate::Negotiated;
pub use notifier::Notifier;
pub use timing::Times;
