//! `auto_unmount`: a process that clears the mount point when the daemon is killed.
//!
//! The daemon holds one end of a pipe, and writes one byte when it ends properly. The watcher reads
//! the other end: if the pipe ends without a byte, the daemon is gone. The watcher clears the mount
//! point only if the daemon's mount is there and dead.

use super::companion::{Arguments, process};
use crate::message::Result;
use holdfast_fuse::mount::{clear_stale, is_stale, mounted_at};
use std::{
    io::{self, Read, Write},
    path::Path,
    process::ChildStdin,
    thread,
    time::{Duration, Instant},
};

/// How long a killed daemon may take to close its descriptors.
const TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// The daemon's end.
pub(super) struct Watched {
    pipe: ChildStdin,
}

impl Watched {
    /// Starts a watcher of the mount at `dir`.
    pub(super) fn start(dir: &Path) -> io::Result<Self> {
        let mounted = mounted_at(dir)?.ok_or_else(|| io::Error::other("the mount is gone"))?;
        let mut watcher = process("watch-mount", &mounted, dir).spawn()?;
        let pipe = watcher
            .stdin
            .take()
            .ok_or_else(|| io::Error::other("no pipe to the watcher"))?;
        Ok(Self { pipe })
    }

    /// Tells the watcher that the mount ended properly.
    pub(super) fn dismiss(mut self) {
        // A watcher that was killed needs no byte.
        let _ = self.pipe.write_all(b".");
    }
}

/// The watcher itself.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Leave the terminal's session: signals of the terminal are for the daemon.
    let _ = rustix::process::setsid();
    let mut byte = [0];
    if io::stdin().read(&mut byte)? != 0 {
        return Ok(());
    }
    // The daemon's pipe may be closed before /dev/fuse, and the mount is dead only after that.
    let begun = Instant::now();
    while arguments.is_mounted()? && begun.elapsed() < TIMEOUT {
        if is_stale(&arguments.dir) {
            return clear_stale(&arguments.dir)
                .map_err(|error| super::refusal::umount_failure(&error));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
