//! An archive that lies in the mount whose daemon works on it: this process reads or writes it, and the daemon has a pipe.
//!
//! A thread of a daemon never waits for its own mount: the kernel would wait for an answer even when the daemon is killed, and
//! neither it nor any caller of the mount would ever go.

use super::job::Job;
use rustix::fs::{fstat, stat};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::{self, JoinHandle};

/// What carries an archive to its daemon, or from it, if anything has to.
pub(super) struct Relay(Option<JoinHandle<io::Result<u64>>>);

impl Relay {
    /// What the daemon of the mount at `root` gets in place of `archive`.
    ///
    /// # Errors
    /// There can be no pipe or no thread.
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
        let carry = move || io::copy(&mut from, &mut to);
        let thread = thread::Builder::new().name("holdfast-relay".into());
        Ok((Some(theirs), Self(Some(thread.spawn(carry)?))))
    }

    /// Waits until all that the daemon wrote is there. What it did not want to read is no error.
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
