//! `auto_unmount`: a process that clears the mount point when the daemon is killed.
//!
//! The daemon holds one end of a pipe and never writes to it but once, at its proper end. The
//! watcher reads the other end: a byte means that all is well, the end of the pipe alone that
//! the daemon is gone. It clears what it finds only if that is the daemon's mount and dead.

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

/// How long a killed daemon may take to let go of its descriptors.
const PATIENCE: Duration = Duration::from_secs(60);
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

    /// The mount ended properly.
    pub(super) fn dismiss(mut self) {
        // A watcher that somebody killed has nothing to clear.
        let _ = self.pipe.write_all(b".");
    }
}

/// What the watcher is told. Started by the daemon, not by people.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    connection: u32,
    dir: PathBuf,
}

/// The watcher itself.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Away from the terminal: its signals are meant for the daemon.
    let _ = rustix::process::setsid();
    let mut byte = [0];
    if io::stdin().read(&mut byte)? != 0 {
        return Ok(());
    }
    // Its pipe ends before its other descriptors do; the mount is dead only after them.
    let begun = Instant::now();
    while is_mounted(&arguments.dir, arguments.connection)? && begun.elapsed() < PATIENCE {
        if is_stale(&arguments.dir) {
            return clear_stale(&arguments.dir)
                .map_err(|error| super::refusal::umount_failure(&error));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Is what is mounted there the mount of this connection, which the process that asks was started for?
pub(super) fn is_mounted(dir: &Path, connection: u32) -> Result<bool> {
    let mounted = mounted_at(dir)?;
    Ok(mounted.is_some_and(|mounted| mounted.connection() == connection))
}
