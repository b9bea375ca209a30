//! Starting the daemon: this program runs itself again and waits until the mount is live.
//!
//! The child's standard output is a pipe to the parent. The child writes one line to it: that the
//! mount is live, or why there is none. Its standard error stays the parent's until then, so that
//! even a panic is seen. Afterwards it is the log file, or /dev/null if the daemon logs to the
//! system's log.

use super::{limits::leave_limits, list::escaped, point::MountPoint, service_manager};
use crate::{
    message::{Failure, Result},
    source::Source,
    sys::close_all_on_exec,
};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, Write},
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The line that the child writes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    Live,
    Failed(Failure),
}

/// The path of this program, or of the running file if it was replaced.
pub(crate) fn program() -> PathBuf {
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => "/proc/self/exe".into(),
    }
}

/// Starts the daemon and waits for its report.
///
/// # Errors
/// The daemon's failure.
pub(super) fn launch(
    source: &Source,
    point: &MountPoint,
    given: &[String],
    log: Option<&Path>,
) -> Result<()> {
    let mut command = Command::new(program());
    command.arg0("holdfast").args(["mount", "--daemon"]);
    if point.made {
        command.arg("--made");
    }
    if let Some(log) = log {
        let log = std::path::absolute(log).map_err(|error| Failure::new(error).at(log))?;
        command.arg("--log").arg(log);
    }
    if !given.is_empty() {
        let items: Vec<String> = given.iter().map(|item| escaped(item)).collect();
        command.args(["-o", &items.join(",")]);
    }
    command.args([
        OsString::from("--"),
        source.argument().into_owned(),
        point.path.clone().into(),
    ]);
    pass_password(source, &mut command);
    if let Err(error) = close_all_on_exec() {
        tracing::info!(%error, "the daemon inherits descriptors");
    }
    let failed = |error: io::Error| {
        Failure::new(format!("the daemon cannot be started: {error}")).at(&point.path)
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    service_manager::prepare(&mut command);
    let mut child = command.spawn().map_err(|error| {
        failed(error).hint("it takes /dev/null, /proc, and the right to start another process")
    })?;
    let mut line = String::new();
    if let Some(pipe) = child.stdout.take() {
        let read = BufReader::new(pipe).read_line(&mut line);
        read.map_err(failed)?;
    }
    match serde_json::from_str(&line) {
        Ok(Report::Live) => {
            service_manager::announce(child.id());
            Ok(())
        }
        Ok(Report::Failed(failure)) => {
            child.wait().map_err(failed)?;
            Err(failure)
        }
        Err(_) => {
            let status = child.wait().map_err(failed)?;
            Err(Failure::new(format!(
                "the daemon ended before the mount was live: {status}"
            ))
            .at(&point.path)
            .hint("--foreground shows what it says"))
        }
    }
}

/// The variable with the password of an address: arguments can be read by all users.
#[cfg(feature = "cluster")]
const PASSWORD: &str = "HOLDFAST_DATABASE_PASSWORD";

/// Gives the password of the source, which is not in its argument, to the daemon.
#[cfg(feature = "cluster")]
fn pass_password(source: &Source, daemon: &mut Command) {
    if let Source::Cluster(address) = source
        && let Some(password) = address.password()
    {
        daemon.env(PASSWORD, password.reveal());
    }
}

#[cfg(not(feature = "cluster"))]
const fn pass_password(_: &Source, _: &mut Command) {}

/// The source with the password that came with the environment.
#[cfg(feature = "cluster")]
pub(super) fn with_password(mut source: Source) -> Source {
    if let (Source::Cluster(address), Ok(password)) = (&mut source, std::env::var(PASSWORD)) {
        address.set_password(password);
    }
    source
}

#[cfg(not(feature = "cluster"))]
pub(super) const fn with_password(source: Source) -> Source {
    source
}

/// The child's side.
pub(super) struct Daemon {
    log: Option<OwnedFd>,
}

impl Daemon {
    /// Leaves the working directory and the shell's limits.
    pub(super) fn begin(log: Option<&Path>) -> io::Result<Self> {
        std::env::set_current_dir("/")?;
        // The log file is created with the user's umask.
        let log = log.map(open_log).transpose()?;
        if let Some(log) = &log {
            rustix::stdio::dup2_stderr(log)?;
        }
        rustix::thread::set_name(c"holdfast")?;
        leave_limits();
        Ok(Self { log })
    }

    /// Tells the parent that the mount is live, and detaches from the parent and the terminal.
    pub(super) fn live(self) -> io::Result<()> {
        // Not before: the kernel lets only processes of systemd's own group into an automount that
        // waits for this mount. It fails for a process group leader, which a child of `launch` is
        // not.
        let _ = rustix::process::setsid();
        let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        if self.log.is_none() {
            rustix::stdio::dup2_stderr(&nothing)?;
        }
        say(&Report::Live)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        Ok(())
    }
}

/// Tells the parent why there is no mount.
pub(super) fn report_failure(failure: &Failure) -> io::Result<()> {
    say(&Report::Failed(failure.clone()))
}

fn say(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_string(report)?;
    line.push('\n');
    let mut out = io::stdout();
    out.write_all(line.as_bytes())?;
    out.flush()
}

/// Redirects standard error to the log file.
pub(super) fn log_to(path: &Path) -> io::Result<()> {
    rustix::stdio::dup2_stderr(open_log(path)?)?;
    Ok(())
}

fn open_log(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let log = rustix::fs::open(path, flags, Mode::from_raw_mode(0o640));
    log.map_err(|code| {
        io::Error::other(format!(
            "the log {}: {}",
            path.display(),
            io::Error::from(code)
        ))
    })
}
