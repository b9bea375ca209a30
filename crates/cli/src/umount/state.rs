//! Finding the daemon of a mount.
//!
//! A separate process asks the daemon. A process with a request that the daemon has read and does
//! not answer cannot be killed. It is left behind then, and ends with the daemon.

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

/// How long a daemon may take to answer the question.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait for a mount of holdfast without an answer to become stale: a killed daemon
/// takes a moment to close its descriptors.
const DYING_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// The mount to ask. `holdfast umount` starts this command.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Is it a mount of holdfast? Its daemons answer as long as they live.
    #[arg(long)]
    ours: bool,
    root: PathBuf,
}

/// The separate process: prints the state.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let state = State::ask(&arguments.root, arguments.ours);
    Ok(serde_json::to_writer(io::stdout(), &state)?)
}

/// The state of a mount's daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    /// It answers, and has this pid.
    Served(u32),
    /// It was killed.
    Stale,
    /// It does not answer in time: it is busy, or hangs.
    Silent,
    /// The mount is not served by a daemon of holdfast that answers.
    Foreign,
}

impl State {
    /// The state of the mount at `root`. `ours`: is it a mount of holdfast? Its daemons answer as
    /// long as they live.
    pub(super) fn of(root: &Path, ours: bool) -> Self {
        // If no process can be started, this one asks.
        Self::ask_separately(root, ours).unwrap_or_else(|_| Self::ask(root, ours))
    }

    /// The state, as a separate process finds it.
    fn ask_separately(root: &Path, ours: bool) -> io::Result<Self> {
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

    /// Asks the daemon, and waits for its answer.
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
