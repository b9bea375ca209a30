//! A directory that is listed, and by which open file.

use crate::node::Node;
use crate::types::OpenFlags;
use std::sync::atomic::AtomicU64;

/// A listing in progress: its directory, and where it ends. An open directory is one; a front end
/// with stateless opens keeps the end itself.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    pub(crate) dir: &'a Node,
    pub(crate) flags: OpenFlags,
    pub(crate) end: &'a AtomicU64,
}

impl<'a> Listing<'a> {
    /// The end of a listing that has not begun.
    pub const NO_END: u64 = u64::MAX;

    /// A listing of a directory that ends at `end`, which is set when it begins. Of the flags,
    /// `NOATIME` and `PATH` have a meaning.
    #[must_use]
    pub const fn new(dir: &'a Node, flags: OpenFlags, end: &'a AtomicU64) -> Self {
        Self { dir, flags, end }
    }
}
