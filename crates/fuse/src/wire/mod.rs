//! The FUSE protocol: requests and replies.
//!
//! ABI 7.45 (Linux 6.18), understood down to 7.31. Decoding is total: any bytes give a
//! [`Request`] or a [`Malformed`], never a panic, and never allocate.

pub(crate) mod control;
mod cursor;
mod decode;
mod decode_files;
pub(crate) mod device;
mod extension;
pub(crate) mod flags;
pub(crate) mod layout;
mod listing;
mod malformed;
mod opcode;
pub(crate) mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use cursor::Body;
pub use decode::Dialect;
pub use extension::Extensions;
pub use flags::{InitFlags, OpenReply};
pub use listing::DirSink;
pub use malformed::Malformed;
pub use opcode::Opcode;
pub use request::{
    CopyRequest, CreateRequest, Forgets, Header, InitRequest, LockRequest, LockType, OpenRequest,
    ReadRequest, ReleaseRequest, Request, SetAttrRequest, SetXattrRequest, WriteRequest,
};

/// Major version of the ABI.
pub const ABI_MAJOR: u32 = 7;
/// Newest minor version that this side speaks.
pub const ABI_MINOR: u32 = 45;
/// Oldest minor version that this side speaks (Linux 5.4).
pub const ABI_MINOR_MIN: u32 = 31;
/// The minor version from which all names can be expired at once (Linux 6.16).
pub(crate) const MINOR_WITH_EPOCHS: u32 = 44;
