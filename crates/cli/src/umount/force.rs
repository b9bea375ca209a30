//! `holdfast umount --force`: revokes a mount and detaches it.
//!
//! A revoked mount refuses everything but closing, and the daemon empties the kernel's caches. The
//! connection stays, so that files can be closed and their space is freed. Only a daemon that does
//! not answer has its connection cut.

use super::Daemon;
use crate::{
    message::{Failure, Result},
    mount::refusal::umount_failure,
};
use holdfast_fuse::mount::{Holders, UmountError, UmountFlags, revoke, umount};
use rustix::{event::Timespec, io::Errno as Code};
use std::{
    io,
    path::Path,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

/// How long a daemon that has just answered may take to revoke its mount. It makes all earlier
/// changes durable first.
const REVOKE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long processes may take to end on their own before they are named.
const FAREWELL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

const LAZY: UmountFlags = UmountFlags {
    lazy: true,
    force: false,
};
const CUT: UmountFlags = UmountFlags {
    lazy: true,
    force: true,
};

/// The daemon's answer.
enum Answer {
    /// The mount is revoked; the number of files and directories still open.
    Revoked(u64),
    /// The mount is revoked, but earlier changes are lost; or it was revoked before.
    Failed,
    /// This user has no permission.
    NotPermitted,
    /// The daemon is of another version, or does not know the caller.
    Unable(io::Error),
    /// No answer in time.
    Silent,
}

impl Answer {
    fn ask(root: &Path) -> Self {
        let (sender, receiver) = mpsc::channel();
        let dir = root.to_owned();
        // If the daemon hangs, the thread ends with this process.
        thread::spawn(move || {
            // The receiver is gone after the timeout.
            let _ = sender.send(Self::of(revoke(&dir)));
        });
        match receiver.recv_timeout(REVOKE_TIMEOUT) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Self::Silent,
        }
    }

    fn of(revoked: io::Result<u64>) -> Self {
        let error = match revoked {
            Ok(open_files) => return Self::Revoked(open_files),
            Err(error) => error,
        };
        match Code::from_io_error(&error) {
            // The errors of a store.
            Some(Code::IO | Code::NOSPC | Code::DQUOT | Code::ROFS | Code::UCLEAN) => Self::Failed,
            Some(Code::PERM | Code::ACCESS) if !rustix::process::geteuid().is_root() => {
                Self::NotPermitted
            }
            _ => Self::Unable(error),
        }
    }
}

/// Revokes the mount at `root` and unmounts it. `daemon`: the one that has just answered. Returns
/// whether the daemon ends now, since the mount is not in use any more.
///
/// # Errors
/// If it was not unmounted; if earlier changes are not all durable.
pub(super) fn take_away(root: &Path, daemon: Option<&Daemon>) -> Result<bool> {
    let answer = Answer::ask(root);
    let open_files = match answer {
        Answer::Revoked(open_files) => Some(open_files),
        Answer::Failed => None,
        Answer::NotPermitted => {
            return Err(Failure::new("cannot be revoked by this user")
                .at(root)
                .hint("run as root, or as the user that mounted it"));
        }
        Answer::Unable(error) => {
            // The daemon notices, and closes its source.
            return cut(root, &format!("its daemon could not revoke it ({error})")).map(|_| true);
        }
        Answer::Silent => return cut(root, "its daemon does not answer"),
    };
    let mut holders = match umount(root, UmountFlags::default()) {
        Ok(()) => return Ok(true),
        Err(UmountError::Busy { holders, .. }) => holders,
        Err(error) => return Err(umount_failure(&error)),
    };
    match umount(root, LAZY) {
        Ok(()) => {}
        // Another process has unmounted it.
        Err(UmountError::NotMounted { .. }) => return Ok(true),
        Err(error) => return Err(umount_failure(&error)),
    }
    if daemon.is_some_and(|daemon| daemon.wait_within(&FAREWELL).unwrap_or(false)) {
        return Ok(true);
    }
    // Files that this process inherited are closed with it.
    holders.0.retain(|holder| holder.pid != std::process::id());
    note(root, &farewell(open_files, &holders));
    // Without `daemon`, the mount had been revoked before.
    if matches!(answer, Answer::Failed) && daemon.is_some() {
        let text = "what was done before could not all be made durable";
        return Err(Failure::new(text).at(root).hint(
            "the daemon's log has the reason: the journal or syslog, or the file that log= named",
        ));
    }
    Ok(false)
}

/// Unmounts by cutting the connection, which only root can: the last resort.
pub(super) fn cut(root: &Path, why: &str) -> Result<bool> {
    umount(root, CUT).map_err(|error| umount_failure(&error))?;
    let done = if rustix::process::geteuid().is_root() {
        "so its connection was cut: calls on its open files fail with ENOTCONN"
    } else {
        "so it was detached: processes that use it still wait for the daemon"
    };
    note(root, &format!("{why}, {done}"));
    Ok(false)
}

/// The message on a revoked mount that is still in use.
fn farewell(open_files: Option<u64>, holders: &Holders) -> String {
    let open = match open_files {
        Some(0) | None => String::new(),
        Some(1) => "; 1 file is open".to_owned(),
        Some(count) => format!("; {count} files are open"),
    };
    let end = "nothing but closing works there, and its daemon ends with the last user";
    format!("is detached, and still in use {holders}{open}; {end}")
}

fn note(root: &Path, text: &str) {
    anstream::println!("{}: {text}", root.display());
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_fuse::mount::Holder;

    #[test]
    fn who_has_how_many_files_open_is_told() {
        let holders = Holders(vec![Holder {
            pid: 7,
            command: "cat".into(),
            how: "open file",
            path: "/mnt/f".into(),
        }]);
        let text = farewell(Some(10), &holders);
        let start = "is detached, and still in use by cat (pid 7): open file \"/mnt/f\"; 10 files ";
        assert!(text.starts_with(start), "{text}");
        assert!(farewell(Some(1), &holders).contains("; 1 file is open; "));
        let unseen = farewell(Some(0), &Holders::default());
        assert!(unseen.contains("by a process that cannot be seen from here"));
        assert!(!unseen.contains("open;"), "{unseen}");
    }

    #[test]
    fn errors_of_the_daemon_are_told_apart() {
        let of = |code: Code| Answer::of(Err(code.into()));
        for code in [Code::IO, Code::NOSPC, Code::UCLEAN] {
            assert!(matches!(of(code), Answer::Failed));
        }
        assert!(matches!(of(Code::NOTTY), Answer::Unable(_)));
        assert!(matches!(Answer::of(Ok(3)), Answer::Revoked(3)));
    }
}
