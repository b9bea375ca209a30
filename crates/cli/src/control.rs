//! The requests a command sends to the daemon of a mount, and the answers.
//!
//! Requests and most answers are one JSON object each; inodes come as rows of fixed length.

use crate::message::{Failure, Result};
use crate::trace::record::Traced;
use holdfast_fuse::mount::Controlled;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Grow the volume.
    Resize {
        /// The new size.
        bytes: u64,
    },
    /// Inode numbers that split all inodes into about equal parts.
    Split {
        /// The number of parts.
        parts: usize,
    },
    /// Inodes, as rows: as many as fit.
    Inodes {
        /// With numbers above this one.
        after: u64,
        /// And up to this one.
        upto: u64,
    },
    /// The report on the mount, as JSON, for mounts without extended attributes.
    Info {
        /// Also count inodes by state and type, which visits each one.
        inodes: bool,
    },
    /// A socket for one job of this process: see [`crate::engine`].
    Job,
    /// Make a read-only mount writable.
    Writable,
    /// Make the mount read-only.
    ReadOnly,
    /// Records of reclaim passes.
    Reclaim {
        /// The first record wanted; `None`: the next one made.
        from: Option<u64>,
    },
}

/// An answer that is not rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The volume's size in bytes.
    Resized(u64),
    /// Where to cut.
    Cuts(Vec<u64>),
    /// The name of the socket for the job.
    Job(Vec<u8>),
    /// The mount is writable.
    Writable,
    /// The mount is read-only.
    ReadOnly,
    /// The next records.
    Reclaim(Traced),
    /// The request failed, and why.
    Failed(String),
}

/// Opens the mount at this root for requests.
pub(crate) fn open(root: &Path) -> Result<Controlled> {
    Controlled::open(root).map_err(|error| refused(root, &error))
}

/// Sends a request that is answered in JSON.
///
/// # Errors
/// The failure that the daemon answered, or that its answer cannot be read.
pub(crate) fn ask(mount: &Controlled, root: &Path, request: &Request) -> Result<Answer> {
    let answer = rows(mount, root, request)?;
    match serde_json::from_slice(&answer)? {
        Answer::Failed(why) => Err(Failure::new(why).at(root)),
        answer => Ok(answer),
    }
}

/// Sends a request that is answered in rows.
///
/// # Errors
/// As [`ask`].
pub(crate) fn rows(mount: &Controlled, root: &Path, request: &Request) -> Result<Vec<u8>> {
    let request = serde_json::to_vec(request)?;
    mount.call(&request).map_err(|error| refused(root, &error))
}

/// The failure for an answer of an unexpected variant.
pub(crate) fn other_answer(root: &Path) -> Failure {
    Failure::new("its daemon answers something that this version does not understand")
        .at(root)
        .hint("it is of another version: mount it again with this one")
}

/// The failure for a request that the kernel or the daemon refused.
pub(crate) fn refused(root: &Path, error: &io::Error) -> Failure {
    use rustix::io::Errno;
    let failure = match Errno::from_io_error(error) {
        Some(Errno::NOTTY) => Failure::new("its daemon does not answer such requests")
            .hint("it is of another version: mount it again with this one"),
        Some(Errno::PERM) => Failure::new("does not accept that request from this user")
            .hint("run as root, or as the user that mounted it"),
        Some(Errno::OPNOTSUPP) => {
            Failure::new("cannot do that: it is no volume, or its device cannot")
                .hint("holdfast info DIR tells what is mounted there")
        }
        _ => Failure::new(error),
    };
    failure.at(root)
}
