//! An archive in the same mount as the tree: the command reads or writes it, and the daemon gets a
//! pipe.
//!
//! A thread of a daemon never waits for its own mount. The kernel would wait for an answer even
//! after the daemon was killed, and neither the daemon nor any caller of the mount could end.

use super::job::Job;
use rustix::fs::{fstat, stat};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::{self, JoinHandle};

/// The thread that copies between the archive and the pipe, if one is needed.
pub(super) struct Relay(Option<JoinHandle<io::Result<u64>>>);

impl Relay {
    /// The descriptor for the daemon of the mount at `root`: `archive`, or a pipe.
    ///
    /// # Errors
    /// Those of making a pipe and a thread.
    pub(super) fn of(
        archive: Option<OwnedFd>,
        root: &Path,
        job: &Job,
    ) -> io::Result<(Option<OwnedFd>, Self)> {
        let archive = match archive {
            Some(archive) if fstat(&archive)?.st_dev == stat(root)?.st_dev => archive,
            other => return Ok((other, Self(None))),
        };
        let (source, target) = pipe_with(PipeFlags::CLOEXEC)?;
        let (ours, theirs) = match job {
            Job::Pack { .. } => ((source, archive), target),
            _ => ((archive, target), source),
        };
        let (mut from, mut to) = (File::from(ours.0), File::from(ours.1));
        let copy = move || io::copy(&mut from, &mut to);
        let thread = thread::Builder::new().name("holdfast-relay".into());
        Ok((Some(theirs), Self(Some(thread.spawn(copy)?))))
    }

    /// Waits until all that the daemon wrote is in the archive. A pipe that the daemon closed early
    /// is no error.
    ///
    /// # Errors
    /// Those of the archive.
    pub(super) fn end(self) -> io::Result<()> {
        let Some(thread) = self.0 else {
            return Ok(());
        };
        let carried = thread
            .join()
            .map_err(|_| io::Error::other("the thread that carries it panicked"))?;
        match carried {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}
