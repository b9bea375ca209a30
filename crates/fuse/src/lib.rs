//! Holdfast's FUSE front end: the wire protocol, two transports, and the session that mounts a file
//! system.
//!
//! [`Session::mount`] brings anything that implements [`Operations`] to a mount point. Requests
//! come over io_uring where the kernel offers it, else through `/dev/fuse`; one handler stands
//! behind both.
//!
//! # Locking
//! No lock of this crate is held while an operation runs. Requests share no counter and no queue,
//! only the operations themselves.

#[macro_use]
extern crate holdfast_types as _;

pub mod mount;
pub mod serve;
pub mod wire;

mod interrupt;
mod operations;
mod session;
mod transport;

pub use holdfast_core::Cancel;
pub use operations::{Answer, Context, FoundLock, Opened, Operations};
pub use serve::CoreOperations;
pub use session::{
    BackingFiles, Config, ErrorCounts, Info, KeptContent, ListingChoice, Liveness, Negotiated,
    Notifier, Passthrough, Session, Times, Totals, Transport, TransportChoice,
};
