//! Holdfast's FUSE front end: the wire protocol, two transports, the session that mounts a file
//! system, and the words for when that cannot be done.
//!
//! [`Session::mount`] brings anything that implements [`Operations`] to a mount point. Requests
//! come over io_uring where the kernel offers it, else through `/dev/fuse`; one handler stands
//! behind both.
//!
//! # Locking
//! Nothing here is locked while an operation runs. Requests share no counter and no queue, only
//! the operations themselves.

pub mod mount;
pub mod serve;
pub mod wire;

mod interrupt;
mod operations;
mod session;
mod transport;

pub use interrupt::Interrupt;
pub use operations::{Context, FoundLock, Opened, Operations};
pub use serve::CoreOperations;
pub use session::{
    BackingFiles, Config, Info, KeptContent, ListingChoice, Negotiated, Notifier, Passthrough,
    Session, Times, Totals, Transport, TransportChoice,
};
