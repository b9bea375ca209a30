//! What a command asks of the daemon of a mount, and how it answers.
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
    /// Let the volume have so many bytes.
    Resize {
        /// That many.
        bytes: u64,
    },
    /// Numbers of inodes that cut all into about equal parts.
    Split {
        /// So many parts.
        parts: usize,
    },
    /// Inodes, as rows: as many as fit.
    Inodes {
        /// With numbers above this one.
        after: u64,
        /// And up to this one.
        upto: u64,
    },
    /// What there is to tell about the mount, as JSON, where no extended attribute can tell it.
    Info {
        /// Also what is counted by looking at each inode.
        inodes: bool,
    },
    /// A socket for one job of this process: see [`crate::engine`].
    Job,
    /// What was mounted read-only takes changes from now on.
    Writable,
    /// What is mounted takes no changes from now on.
    ReadOnly,
    /// How memory was freed.
    Reclaim {
        /// From this record on; `None`: from now on.
        from: Option<u64>,
    },
}

/// An answer that is not rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The volume has so many bytes now.
    Resized(u64),
    /// Where to cut.
    Cuts(Vec<u64>),
    /// The name of the socket by which the job is to come.
    Job(Vec<u8>),
    /// It takes changes.
    Writable,
    /// It takes none.
    ReadOnly,
    /// The next records.
    Reclaim(Traced),
    /// It could not be done.
    Failed(String),
}

/// The mount at this root, to be asked.
pub(crate) fn open(root: &Path) -> Result<Controlled> {
    Controlled::open(root).map_err(|error| refused(root, &error))
}

/// Asks for something that is answered in JSON.
///
/// # Errors
/// What the daemon answers, or that it answers nothing of the kind.
pub(crate) fn ask(mount: &Controlled, root: &Path, request: &Request) -> Result<Answer> {
    let answer = rows(mount, root, request)?;
    match serde_json::from_slice(&answer)? {
        Answer::Failed(why) => Err(Failure::new(why).at(root)),
        answer => Ok(answer),
    }
}

/// Asks for rows.
///
/// # Errors
/// As [`ask`].
pub(crate) fn rows(mount: &Controlled, root: &Path, request: &Request) -> Result<Vec<u8>> {
    let request = serde_json::to_vec(request)?;
    mount.call(&request).map_err(|error| refused(root, &error))
}

/// An answer that this version does not know.
pub(crate) fn other_answer(root: &Path) -> Failure {
    Failure::new("its daemon answers something that this version does not understand")
        .at(root)
        .hint("it is of another version: mount it again with this one")
}

/// A call that failed.
pub(crate) fn refused(root: &Path, error: &io::Error) -> Failure {
    use rustix::io::Errno;
    let failure = match Errno::from_io_error(error) {
        Some(Errno::NOTTY) => Failure::new("its daemon does not answer such requests")
            .hint("it is of another version: mount it again with this one"),
        Some(Errno::PERM) => Failure::new("may not be asked for that by this user")
            .hint("run as root, or as the user who mounted it"),
        Some(Errno::OPNOTSUPP) => {
            Failure::new("cannot do that: it is no volume, or its device cannot")
                .hint("holdfast info DIR tells what is mounted there")
        }
        _ => Failure::new(error.to_string()),
    };
    failure.at(root)
}
