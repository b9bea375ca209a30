//! Unmounting when the daemon does not answer.
//!
//! umount(2) of a mount of the type `fuseblk` waits in the kernel until the daemon has closed the
//! volume. Neither a signal nor another umount(2) ends that wait, and the mount is no longer in the
//! mount table. So the daemon's pid is printed before.

use crate::{
    message::{Failure, Result},
    mount::{exit_report::ExitReport, refusal::umount_failure},
};
use holdfast_fuse::mount::{Mounted, UmountError, UmountFlags, umount};
use std::{
    fs,
    path::Path,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

/// How long umount(2) may wait for a daemon before a message is printed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Unmounts a mount with a daemon that answers; prints its pid if that takes long.
pub(super) fn unmount_answering(
    mounted: &Mounted,
    flags: UmountFlags,
    daemon: Option<u32>,
) -> Result<()> {
    let root = &mounted.mount_point;
    let (done, waits) = mpsc::channel::<()>();
    if let (true, Some(pid)) = (mounted.is_on_a_device(), daemon) {
        let text = format!(
            "holdfast: {}: waits until its daemon has closed what it serves; if it hangs, this ends it: kill -9 {pid}",
            root.display()
        );
        thread::spawn(move || {
            if waits.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout) {
                anstream::eprintln!("{text}");
            }
        });
    }
    let unmounted = umount(root, flags);
    drop(done);
    unmounted.map_err(|error| umount_failure(&error))
}

/// Detaches the mount if `lazy`, else fails. `daemon`: the pid, if it is known.
pub(super) fn unmount_silent(mounted: &Mounted, lazy: bool, daemon: Option<u32>) -> Result<()> {
    let root = &mounted.mount_point;
    let (of, kill) = match daemon {
        Some(pid) => (format!(" (pid {pid})"), format!(": kill -9 {pid}")),
        None => Default::default(),
    };
    let silent = format!("its daemon{of} does not answer");
    if !lazy {
        // The unanswered question itself keeps the mount busy.
        return Err(Failure::new(silent)
            .at(root)
            .hint("wait for it, or cut its connection: --force"));
    }
    if mounted.is_on_a_device() {
        let root = root.display();
        anstream::println!(
            "{root}: {silent}; it is detached, and each sync waits for it until it answers or ends{kill}"
        );
    }
    let flags = UmountFlags { lazy, force: false };
    umount(root, flags).map_err(|error| umount_failure(&error))
}

/// The failure for a directory where nothing is mounted. The daemon of an earlier mount may still
/// run.
pub(super) fn not_mounted(dir: &Path) -> Failure {
    let failure = umount_failure(&UmountError::NotMounted {
        dir: dir.to_owned(),
    });
    let path = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    match ExitReport::server_of(&path) {
        Some(pid) => failure.hint(format!(
            "its daemon (pid {pid}) still runs; if it hangs, this ends it and all processes that wait for it: kill -9 {pid}"
        )),
        None => failure,
    }
}
