//! What a session tells about itself.

use super::{Negotiated, Totals};
use std::{fmt, path::PathBuf};

/// A way for requests to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// FUSE over io_uring.
    Uring,
    /// Reads and writes of `/dev/fuse`.
    Dev,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uring => "io_uring",
            Self::Dev => "/dev/fuse",
        })
    }
}

/// What a session tells about itself.
#[derive(Clone, Debug)]
pub struct Info {
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// How requests come.
    pub transport: Transport,
    /// Why they do not come the other way.
    pub why: String,
    /// Threads that serve requests.
    pub threads: usize,
    /// Why replies are not committed under `SCHED_IDLE`, which keeps callers on their processors;
    /// `None` if they are.
    pub no_idle_policy: Option<String>,
    /// Why it is not mounted as `fuseblk`, if that was wanted.
    pub no_block: Option<String>,
    /// Why the kernel passes no files through, if that was wanted.
    pub no_passthrough: Option<String>,
    /// Why the session ended, if it could not go on.
    pub failure: Option<String>,
    /// What was negotiated with the kernel.
    pub negotiated: Negotiated,
    /// Counts so far.
    pub totals: Totals,
}
