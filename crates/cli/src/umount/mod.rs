//! `holdfast umount`: ends a mount, or clears what a killed daemon left.

mod force;
mod silent;
pub(crate) mod state;

use crate::{
    message::{Failure, Result},
    mount::{
        exit_report::{Exit, ExitReport},
        refusal::umount_failure,
    },
};
use holdfast_fuse::mount::{Mounted, UmountError, UmountFlags, clear_stale, mounted_at, mounts_of};
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    process::{Pid, PidfdFlags},
};
use state::State;
use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

/// How long a daemon may take to end once nothing is mounted any more.
const END_TIMEOUT_SECONDS: i64 = 30;

/// How long it is waited for once it says that all is done.
const LINGER_SECONDS: i64 = 5;

/// Unmount a file system, or clear the mount point of a daemon that was killed
///
/// Waits until the daemon has ended, and fails if the volume could not be closed cleanly: the reason is told. A mount
/// that is in use stays, and the processes that use it are named. What is mounted elsewhere as well (by mount --bind,
/// or in another mount namespace) lives on there, which is said.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The mount points
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,

    /// Detach a mount that is in use: new users no longer find it, and it ends with its last one
    #[arg(short, long)]
    lazy: bool,

    /// Take a mount that is in use away from its users, whose calls fail with EIO from then on;
    /// if the daemon hangs, cut its connection
    ///
    /// What was written before is kept. Files stay open until they are closed, which works, and the
    /// daemon ends with the last one; who has files open is told. Whoever touches the pages of a
    /// mapped file gets SIGBUS. Only root and the one who mounted it may do that.
    ///
    /// A daemon that does not answer within 2 seconds has its connection cut, which is said: what
    /// it had open is lost then, and fails with ENOTCONN.
    #[arg(short, long)]
    force: bool,
}

impl Arguments {
    pub(crate) fn new(dir: PathBuf, lazy: bool, force: bool) -> Self {
        Self {
            dirs: vec![dir],
            lazy,
            force,
        }
    }
}

/// Unmounts all of them; goes on after a failure, and tells each.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let flags = UmountFlags {
        lazy: arguments.lazy,
        force: arguments.force,
    };
    let mut failures = Vec::new();
    for dir in &arguments.dirs {
        failures.extend(one(dir, flags).err());
    }
    let Some(last) = failures.pop() else {
        return Ok(());
    };
    failures.iter().for_each(Failure::print);
    Err(last)
}

fn one(dir: &Path, flags: UmountFlags) -> Result<()> {
    let failed = |error: UmountError| umount_failure(&error);
    let Some(mounted) = mounted_at(dir)? else {
        return Err(silent::not_mounted(dir));
    };
    let root = mounted.mount_point.clone();
    let ours = mounted.is_holdfast();
    let state = if mounted.is_fuse() {
        State::of(&root, ours)
    } else {
        State::Foreign
    };
    match state {
        State::Stale => return clear_stale(&root).map_err(failed),
        State::Foreign if !ours => {
            return Err(umount_failure(&UmountError::Foreign {
                dir: dir.to_owned(),
                fs_type: mounted.fs_type,
            }));
        }
        _ => {}
    }
    // Looked up before, since afterwards there is nobody to ask and the number may be another's.
    let pid = match state {
        State::Served(pid) => Some(pid),
        State::Silent => ExitReport::server_of(&root),
        State::Stale | State::Foreign => None,
    };
    let daemon = pid.and_then(Daemon::of);
    // Before as well: once it is gone, a file system mounted meanwhile may have its number.
    let is_shared = mounts_of(mounted.connection())?.len() > 1;
    let ends = match state {
        State::Silent if flags.force => force::cut(&root, "its daemon does not answer")?,
        State::Silent => {
            silent::unmount_silent(&mounted, flags.lazy, pid)?;
            false
        }
        _ if !flags.force => {
            silent::unmount_told(&mounted, flags, pid)?;
            !flags.lazy
        }
        // A foreign one of ours has nothing to tell (it is a program's own, say), or cannot: it was
        // taken away before.
        _ => force::take_away(&root, daemon.as_ref())?,
    };
    match daemon {
        Some(daemon) if ends && !(is_shared && lives_on(dir, &mounted)?) => {
            daemon.wait_for_end(dir)
        }
        _ => Ok(()),
    }
}

/// Is the same file system mounted elsewhere as well? Then its daemon serves on, which is said.
fn lives_on(dir: &Path, mounted: &Mounted) -> Result<bool> {
    let mounts = mounts_of(mounted.connection())?;
    let Some((other, process)) = mounts.into_iter().next() else {
        return Ok(false);
    };
    let (dir, other) = (dir.display(), other.mount_point);
    let of = process.map_or_else(String::new, |pid| {
        format!(" in the mount namespace of process {pid}")
    });
    anstream::eprintln!(
        "holdfast: {dir}: unmounted; the file system lives on at {}{of}",
        other.display()
    );
    Ok(true)
}

/// The process that serves the mount.
struct Daemon {
    handle: OwnedFd,
    report: Option<ExitReport>,
}

impl Daemon {
    /// That with this number, if the number means something here: it may be in another container.
    fn of(pid: u32) -> Option<Self> {
        let raw = i32::try_from(pid).ok()?;
        let handle = rustix::process::pidfd_open(Pid::from_raw(raw)?, PidfdFlags::empty()).ok()?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let report = ExitReport::of_process(pid);
        name.starts_with("holdfast")
            .then_some(Self { handle, report })
    }

    /// Has it ended, at the latest after so long?
    fn ends_within(&self, timeout: &Timespec) -> io::Result<bool> {
        let mut ends = [PollFd::new(&self.handle, PollFlags::IN)];
        Ok(rustix::event::poll(&mut ends, Some(timeout))? > 0)
    }

    /// Waits for its end; fails as it did.
    fn wait_for_end(self, dir: &Path) -> Result<()> {
        let second = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let (mut waited, mut done) = (0, 0);
        while !self.ends_within(&second)? {
            waited += 1;
            done += i64::from(self.report.as_ref().is_some_and(ExitReport::is_written));
            if done >= LINGER_SECONDS {
                // All is closed. A system call in a file system that does not answer cannot be ended, nor can its process.
                anstream::eprintln!(
                    "holdfast: {}: unmounted; its daemon waits for a file system that does not answer",
                    dir.display()
                );
                break;
            }
            if waited >= END_TIMEOUT_SECONDS {
                return Err(Failure::new("is unmounted, but its daemon still runs")
                    .at(dir)
                    .hint("wait for it: until it ends, the volume is not closed"));
            }
        }
        match self.report.map(ExitReport::read) {
            // Without a report it is of a version that makes none, or of a user who is not shown to this one.
            None | Some(Exit::Well) => Ok(()),
            Some(Exit::Failed(failure)) => Err(failure),
            Some(Exit::Silent) => Err(Failure::new(
                "is unmounted, but its daemon was killed before all was durable",
            )
            .at(dir)
            .hint("what was durable before is there when it is mounted again")),
        }
    }
}
