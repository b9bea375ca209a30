//! A volume that fails while it is mounted: the log has the reason, and the mount becomes read-only.
//!
//! *Invariant.* No thread of the daemon waits for the kernel to change the daemon's own mount: whatever holds that mount up
//! may itself wait for the daemon's answer, and a killed daemon with a thread that waits so is never gone. A process beside it
//! does the work ([`run`]), which shares neither memory nor descriptors with it. The daemon waits for the end of that process,
//! as a killed one need not.

use super::{launch, remount, watcher};
use crate::message::{Failure, Result};
use holdfast_fuse::mount::mounted_at;
use holdfast_volume::VolumeStore;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::{
    io::{self, BufRead, BufReader, Write as _},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// How long a mount that cannot be made read-only, because files are open for writing, is left alone.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// Acts when the volume that is mounted at `dir` fails.
pub(super) fn watch(store: &VolumeStore, dir: &Path) {
    let dir = dir.to_owned();
    store.notify_failure(move |reason| {
        tracing::error!(
            ?dir,
            "the volume failed: {reason}: nothing is written any more, and what was not durable is lost; \
             unmount it and mount it again"
        );
        let mark = move || {
            if let Err(error) = have_it_marked(&dir) {
                tracing::warn!("the mount is not marked read-only: {error}");
            }
        };
        let thread = thread::Builder::new().name("holdfast-failed".to_owned());
        if let Err(error) = thread.spawn(mark) {
            tracing::warn!("the mount is not marked read-only: {error}");
        }
    });
}

/// Starts the process that marks the mount, and logs what it says, until it ends.
fn have_it_marked(dir: &Path) -> io::Result<()> {
    let Some(mounted) = mounted_at(dir)? else {
        return Ok(());
    };
    let mut marker = Command::new(launch::program())
        .arg0("holdfast")
        .arg("mark-failed-mount")
        .arg(mounted.connection().to_string())
        .arg(dir)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    // Ends with this process: then there is nothing to be marked any more.
    let life_line = marker.stdin.take();
    for line in marker.stdout.take().into_iter().flat_map(said) {
        tracing::info!(failure = line, "the mount is not marked read-only yet");
    }
    drop(life_line);
    let status = marker.wait()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("what marks it ended: {status}")))
}

fn said(stdout: impl io::Read) -> impl Iterator<Item = String> {
    BufReader::new(stdout).lines().map_while(io::Result::ok)
}

/// Which mount is marked. Started by the daemon, not by people.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    connection: u32,
    dir: PathBuf,
}

/// The process beside the daemon: marks the mount as what it is, for statfs(2) and the mount table, as soon as no file is open
/// for writing. Ends with the mount, or with the daemon. Says why it is not done yet.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Away from the terminal: its signals are meant for the daemon.
    let _ = rustix::process::setsid();
    let mut told: Option<Failure> = None;
    while watcher::is_mounted(&arguments.dir, arguments.connection)? {
        let Err(failure) = remount::make_read_only(&arguments.dir) else {
            return Ok(());
        };
        if told.as_ref() != Some(&failure) {
            writeln!(io::stdout(), "{failure}")?;
            told = Some(failure);
        }
        if has_ended_after_a_pause()? {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits a little; is the daemon gone?
fn has_ended_after_a_pause() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut life_line = [PollFd::new(&stdin, PollFlags::empty())];
    match rustix::event::poll(&mut life_line, Some(&PAUSE)) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        ended => Ok(ended? > 0),
    }
}
