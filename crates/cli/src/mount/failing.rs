//! When a mounted volume fails, the reason is logged, and the mount becomes read-only.
//!
//! *Invariant.* No thread of the daemon waits for the kernel to change the daemon's own mount. The
//! operation that holds the mount may be waiting for the daemon's answer, and a daemon killed with
//! such a thread would never end. Therefore a separate process does the work ([`run`]), which
//! shares neither memory nor descriptors with the daemon. A thread of the daemon waits for the end
//! of that process; this wait ends if the daemon is killed.

use super::{
    companion::{Arguments, process},
    remount, service_manager,
};
use crate::log::ALWAYS;
use crate::message::{Failure, Result};
use holdfast_fuse::mount::mounted_at;
use holdfast_volume::VolumeStore;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::{
    io::{self, BufRead, BufReader, Write as _},
    path::Path,
    process::Stdio,
    thread,
};

/// How long a mount that cannot be made read-only, because files are open for writing, is left
/// alone.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// Sets what happens when the volume that is mounted at `dir` fails.
pub(super) fn watch(store: &VolumeStore, dir: &Path) {
    let dir = dir.to_owned();
    store.notify_failure(move |reason| {
        tracing::error!(
            target: ALWAYS,
            ?dir,
            "the volume failed: {reason}: nothing is written any more, and what was not durable is lost; \
             unmount it and mount it again"
        );
        service_manager::status(&format!(
            "failed, nothing is written any more: {reason}"
        ));
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

/// Runs the process that marks the mount, and logs its output.
fn have_it_marked(dir: &Path) -> io::Result<()> {
    let Some(mounted) = mounted_at(dir)? else {
        return Ok(());
    };
    let mut marker = process("mark-failed-mount", &mounted, dir)
        .stdout(Stdio::piped())
        .spawn()?;
    // The pipe is closed with this process, which ends the marker.
    let lifeline = marker.stdin.take();
    for line in marker.stdout.take().into_iter().flat_map(said) {
        tracing::info!(failure = line, "the mount is not marked read-only yet");
    }
    drop(lifeline);
    let status = marker.wait()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("what marks it ended: {status}")))
}

fn said(stdout: impl io::Read) -> impl Iterator<Item = String> {
    BufReader::new(stdout).lines().map_while(io::Result::ok)
}

/// The separate process: makes the mount read-only, for statfs(2) and the mount table, as soon as
/// no file is open for writing. It ends with the mount or with the daemon. It prints why the mount
/// is not read-only yet.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Leave the terminal's session: signals of the terminal are for the daemon.
    let _ = rustix::process::setsid();
    let mut last: Option<Failure> = None;
    while arguments.is_mounted()? {
        let Err(failure) = remount::make_read_only(&arguments.dir) else {
            return Ok(());
        };
        if last.as_ref() != Some(&failure) {
            writeln!(io::stdout(), "{failure}")?;
            last = Some(failure);
        }
        if has_ended_after_a_pause()? {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits for [`PAUSE`]; returns whether the daemon is gone.
fn has_ended_after_a_pause() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut lifeline = [PollFd::new(&stdin, PollFlags::empty())];
    match rustix::event::poll(&mut lifeline, Some(&PAUSE)) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        ended => Ok(ended? > 0),
    }
}
