//! `auto_unmount`: a process that clears the mount point when the daemon is killed.
//!
//! The daemon holds one end of a pipe, and writes one byte when it ends properly. The watcher reads
//! the other end: if the pipe ends without a byte, the daemon is gone. The watcher clears the mount
//! point only if the daemon's mount is there and dead.

use crate::message::Result;
use holdfast_fuse::mount::{clear_stale, is_stale, mounted_at};
use std::{
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
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
        let mut watcher = Command::new(super::launch::program())
            .arg0("holdfast")
            .arg("watch-mount")
            .arg(mounted.connection().to_string())
            .arg(dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
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

/// The mount to watch. The daemon starts this command.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    connection: u32,
    dir: PathBuf,
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
    while is_mounted(&arguments.dir, arguments.connection)? && begun.elapsed() < TIMEOUT {
        if is_stale(&arguments.dir) {
            return clear_stale(&arguments.dir)
                .map_err(|error| super::refusal::umount_failure(&error));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Is the mount at `dir` the one of this connection?
pub(super) fn is_mounted(dir: &Path, connection: u32) -> Result<bool> {
    let mounted = mounted_at(dir)?;
    Ok(mounted.is_some_and(|mounted| mounted.connection() == connection))
}
