//! What stands behind a mount.
//!
//! Another process asks: a question that the daemon has read and does not answer cannot be ended, nor can the process that asked.
//! It is left behind then, and ends with the daemon.

use crate::{info, message::Result, mount::program};
use holdfast_fuse::mount::is_stale;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long a daemon may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a mount of ours, of which the daemon gives no answer, may turn out to be dead: a killed
/// daemon takes a moment to let go of its descriptors.
const DYING_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// What is asked. Started by `holdfast umount`, not by people.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Is it a mount of this command's? Its daemons answer as long as they live.
    #[arg(long)]
    ours: bool,
    root: PathBuf,
}

/// The process that asks: prints what it is told.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let state = State::ask(&arguments.root, arguments.ours);
    Ok(serde_json::to_writer(io::stdout(), &state)?)
}

/// What stands behind a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    /// This process.
    Served(u32),
    /// A daemon that was killed.
    Stale,
    /// A daemon that does not answer in time: it may be busy, or hang.
    Silent,
    /// Something else.
    Foreign,
}

impl State {
    /// That behind the mount at `root`. `ours`: is it one of this command's? Its daemons answer as long as they live.
    pub(super) fn of(root: &Path, ours: bool) -> Self {
        // Without another process it has to be this one.
        Self::told(root, ours).unwrap_or_else(|_| Self::ask(root, ours))
    }

    /// What another process is told.
    fn told(root: &Path, ours: bool) -> io::Result<Self> {
        let mut command = Command::new(program());
        command.arg0("holdfast").arg("ask-mount").current_dir("/");
        if ours {
            command.arg("--ours");
        }
        let child = command
            .arg("--")
            .arg(root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child?;
        let Some(mut output) = child.stdout.take() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut said = [PollFd::new(&output, PollFlags::IN)];
        let timeout = Timespec::try_from(ANSWER_TIMEOUT).map_err(io::Error::other)?;
        if rustix::event::poll(&mut said, Some(&timeout))? == 0 {
            return Ok(Self::Silent);
        }
        let mut text = String::new();
        output.read_to_string(&mut text)?;
        child.wait()?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Asks; waits for the daemon.
    fn ask(root: &Path, ours: bool) -> Self {
        let begun = Instant::now();
        loop {
            match info::daemon_of(root) {
                Some(pid) => return Self::Served(pid),
                None if is_stale(root) => return Self::Stale,
                None if !ours || begun.elapsed() >= DYING_TIMEOUT => return Self::Foreign,
                None => thread::sleep(PAUSE),
            }
        }
    }
}
