//! Connections to a PostgreSQL: how they are made, batches of changes, and what is sent once more.
//!
//! *Threads.* One thread, `holdfast-db`, runs all connections of a session on a runtime of tokio.
//! Callers are plain threads: they wait for a reply, for at most the time that the mount allows.

mod batch;
mod connector;
mod errors;
mod link;
mod runtime;
mod tls;
mod wire;

pub(crate) use batch::{Batches, Encoded, SLOTS};
pub(crate) use connector::{Connector, Notified};
pub(crate) use errors::{Trouble, chain};
pub(crate) use link::Link;
pub(crate) use runtime::Runtime;
pub use tls::{Tls, TlsMode};
pub(crate) use wire::{Malformed, array, fields};
