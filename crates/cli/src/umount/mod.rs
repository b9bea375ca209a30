//! `holdfast umount`: ends a mount, or clears the mount point of a killed daemon.

mod force;
mod silent;
pub(crate) mod state;

use crate::{
    complete,
    fstab::{self, Fstab},
    message::{Failure, Result},
    mount::{
        exit_report::{Exit, ExitReport},
        refusal::umount_failure,
    },
};
use clap_complete::ArgValueCompleter;
use holdfast_fuse::mount::{
    Mounted, UmountError, UmountFlags, clear_stale, is_stale, mounted_at, mounts_of,
};
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

/// How long to wait for the process after it has written its result.
const LINGER_SECONDS: i64 = 5;

/// Unmount a file system, or clear the mount point of a daemon that was killed
///
/// Waits until the daemon has ended. If the volume could not be closed cleanly, the command fails
/// and prints the reason. A mount that is in use stays, and the processes that use it are named. If
/// the file system is mounted elsewhere as well (by mount --bind, or in another mount namespace),
/// it lives on there, and a message says so.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The mount points
    #[arg(value_name = "DIR", required = true, add = ArgValueCompleter::new(complete::mount_points))]
    dirs: Vec<PathBuf>,

    /// Detach a mount that is in use: it is no longer reachable, and ends with its last user
    #[arg(short, long)]
    lazy: bool,

    /// Revoke a mount that is in use: all calls fail with EIO from then on; if the daemon hangs,
    /// cut its connection
    ///
    /// Earlier changes are kept. Files stay open until they are closed, and the daemon ends with
    /// the last one. The processes that have files open are named. Access to pages of a mapped file
    /// raises SIGBUS. Only root and the user that mounted it may do this.
    ///
    /// A daemon that does not answer within 2 seconds has its connection cut, and a message says
    /// so. Calls on files that were open then fail with ENOTCONN.
    #[arg(short, long)]
    force: bool,

    /// Also remove the line for DIR from /etc/fstab, if it mounts a file system of holdfast. It is
    /// no error if nothing is mounted at DIR then
    #[arg(long)]
    update_fstab: bool,

    /// The file for --update-fstab
    #[arg(long, hide = true, value_name = "FILE", default_value = fstab::SYSTEMS)]
    fstab: PathBuf,

    /// Only clear the mount point of a daemon that was killed; if there is none, do nothing
    #[arg(long, conflicts_with_all = ["lazy", "force", "update_fstab"])]
    stale: bool,
}

impl Arguments {
    pub(crate) fn new(dir: PathBuf, lazy: bool, force: bool) -> Self {
        Self {
            dirs: vec![dir],
            lazy,
            force,
            update_fstab: false,
            fstab: fstab::SYSTEMS.into(),
            stale: false,
        }
    }
}

/// Unmounts all of them; continues after a failure, and prints each.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let flags = UmountFlags {
        lazy: arguments.lazy,
        force: arguments.force,
    };
    let mut failures = Vec::new();
    for dir in &arguments.dirs {
        let done = match arguments {
            Arguments { stale: true, .. } => clear(dir),
            Arguments {
                update_fstab: true, ..
            } => forget(dir, flags, &arguments.fstab),
            _ => one(dir, flags),
        };
        failures.extend(done.err());
    }
    let Some(last) = failures.pop() else {
        return Ok(());
    };
    failures.iter().for_each(Failure::print);
    Err(last)
}

/// Unmounts, and removes the line of fstab. One of them may be done already.
fn forget(dir: &Path, flags: UmountFlags, fstab: &Path) -> Result<()> {
    let mut fstab = Fstab::read(fstab)?;
    // Afterwards the directory may be gone.
    let path = std::fs::canonicalize(dir).or_else(|_| std::path::absolute(dir))?;
    let had_line = fstab.remove(&path);
    if !had_line || mounted_at(dir).is_ok_and(|mounted| mounted.is_some()) {
        one(dir, flags)?;
    }
    fstab.write()
}

/// Clears the mount point of a daemon that was killed, if this is one.
fn clear(dir: &Path) -> Result<()> {
    match mounted_at(dir) {
        Ok(Some(mounted)) if mounted.is_holdfast() && is_stale(dir) => {
            clear_stale(dir).map_err(|error| umount_failure(&error))
        }
        _ => Ok(()),
    }
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
    // Looked up before unmounting: afterwards there is no mount to ask, and the pid may be reused.
    let pid = match state {
        State::Served(pid) => Some(pid),
        State::Silent => ExitReport::server_of(&root),
        State::Stale | State::Foreign => None,
    };
    let daemon = pid.and_then(Daemon::of);
    // Also before unmounting: afterwards the connection's number may be reused by another mount.
    // `mounts_of` waits for processes that close files on this mount while they execute a program,
    // which take until the daemon answers. A connection that is cut ends for all its mounts.
    let is_shared = state != State::Silent && mounts_of(mounted.connection())?.len() > 1;
    let is_ending = match state {
        State::Silent if flags.force => force::cut(&root, "its daemon does not answer")?,
        State::Silent => {
            silent::unmount_silent(&mounted, flags.lazy, pid)?;
            false
        }
        _ if !flags.force => {
            silent::unmount_answering(&mounted, flags, pid)?;
            !flags.lazy
        }
        // A mount of holdfast without a report: of a program that embeds it, or revoked before.
        _ => force::take_away(&root, daemon.as_ref())?,
    };
    match daemon {
        Some(daemon) if is_ending && !(is_shared && lives_on(dir, &mounted)?) => {
            daemon.wait_for_end(dir)
        }
        _ => Ok(()),
    }
}

/// Is the same file system mounted elsewhere as well? Then its daemon serves on, and a message says
/// so.
fn lives_on(dir: &Path, mounted: &Mounted) -> Result<bool> {
    let Some((other, process)) = mounts_of(mounted.connection())?.into_iter().next() else {
        return Ok(false);
    };
    let of = process.map_or_else(String::new, |pid| {
        format!(" in the mount namespace of process {pid}")
    });
    anstream::eprintln!(
        "holdfast: {}: unmounted; the file system lives on at {}{of}",
        dir.display(),
        other.mount_point.display()
    );
    Ok(true)
}

/// The process that serves the mount.
struct Daemon {
    handle: OwnedFd,
    report: Option<ExitReport>,
}

impl Daemon {
    /// The daemon with this pid; `None` if there is none, as for a daemon in another container.
    fn of(pid: u32) -> Option<Self> {
        let raw = i32::try_from(pid).ok()?;
        let handle = rustix::process::pidfd_open(Pid::from_raw(raw)?, PidfdFlags::empty()).ok()?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let report = ExitReport::of_process(pid);
        name.starts_with("holdfast")
            .then_some(Self { handle, report })
    }

    /// Waits until it has ended, for `timeout` at most; returns whether it has.
    fn wait_within(&self, timeout: &Timespec) -> io::Result<bool> {
        let mut handle = [PollFd::new(&self.handle, PollFlags::IN)];
        Ok(rustix::event::poll(&mut handle, Some(timeout))? > 0)
    }

    /// Waits for its end; fails if the daemon failed.
    fn wait_for_end(self, dir: &Path) -> Result<()> {
        let second = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let (mut waited, mut done) = (0, 0);
        while !self.wait_within(&second)? {
            waited += 1;
            done += i64::from(self.report.as_ref().is_some_and(ExitReport::is_written));
            if done >= LINGER_SECONDS {
                // The source is closed. A system call in a file system that does not answer cannot
                // be interrupted, so the process cannot end.
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
            // There is no report of an older daemon, or of one that this user may not inspect.
            None | Some(Exit::Well) => Ok(()),
            Some(Exit::Failed(failure)) => Err(failure),
            Some(Exit::Silent) => Err(Failure::new(
                "is unmounted, but its daemon was killed before all was durable",
            )
            .at(dir)
            .hint("durable changes are there when it is mounted again")),
        }
    }
}
