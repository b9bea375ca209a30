//! The engine PostgreSQL: a file system is a schema, and its functions are the protocol.
//!
//! [`mkfs`] makes the tables and the functions of `schema/`, [`connect`] begins a session. One
//! operation is one call of one function, which is one transaction and one round trip.
//!
//! *Layers.* `session.rs` is the seam; below it `encode.rs`, `decode.rs` and `install.rs`; below
//! those the connections.

mod config;
mod decode;
mod encode;
mod error;
mod install;
mod remove;
mod rows;
mod session;

pub use crate::connections::{Tls, TlsMode};
pub use config::{Config, MkfsOptions};
pub use error::ConnectError;
pub use install::mkfs;
pub(crate) use remove::{identity, remove};
pub use session::connect;
