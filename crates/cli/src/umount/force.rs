//! `holdfast umount --force`: takes a mount away from those who use it.
//!
//! The daemon is asked to revoke it: from then on it refuses everything but closing, and empties the
//! kernel's caches. The connection lives on, so that every file can be closed and gives back what it
//! held. Only a daemon that does not answer has its connection cut.

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

/// How long a daemon that has just answered may take to revoke its mount: what was done before is
/// made durable first.
const REVOKE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long those who meet the end of the mount may take to end themselves before they are told of.
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

/// What the daemon answered.
enum Answer {
    /// The mount is revoked; so many files and directories are still open.
    Revoked(u64),
    /// It is revoked, but something done before is lost; or it was revoked before.
    Failed,
    /// This user may not.
    NotPermitted,
    /// It does not know how, or does not know the caller.
    Unable(io::Error),
    /// None in time.
    Silent,
}

impl Answer {
    fn ask(root: &Path) -> Self {
        let (sender, receiver) = mpsc::channel();
        let dir = root.to_owned();
        // Left behind if the daemon hangs; it goes with this process.
        thread::spawn(move || {
            // Nobody listens after the timeout.
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
            // What a store answers.
            Some(Code::IO | Code::NOSPC | Code::DQUOT | Code::ROFS | Code::UCLEAN) => Self::Failed,
            Some(Code::PERM | Code::ACCESS) if !rustix::process::geteuid().is_root() => {
                Self::NotPermitted
            }
            _ => Self::Unable(error),
        }
    }
}

/// Revokes the mount at `root` and unmounts it. `daemon`: the one that has just answered. Gives
/// whether the mount is not in use any more, so that its daemon ends now.
///
/// # Errors
/// If it is not unmounted; if it is, and what was done before is not all durable.
pub(super) fn take_away(root: &Path, daemon: Option<&Daemon>) -> Result<bool> {
    let answer = Answer::ask(root);
    let open_files = match answer {
        Answer::Revoked(open_files) => Some(open_files),
        Answer::Failed => None,
        Answer::NotPermitted => {
            return Err(Failure::new("may not be taken away by this user")
                .at(root)
                .hint("run as root, or as the user who mounted it"));
        }
        Answer::Unable(error) => {
            // The daemon notices, and closes what it serves.
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
        // Somebody was faster.
        Err(UmountError::NotMounted { .. }) => return Ok(true),
        Err(error) => return Err(umount_failure(&error)),
    }
    if daemon.is_some_and(|daemon| daemon.ends_within(&FAREWELL).unwrap_or(false)) {
        return Ok(true);
    }
    // What this process was started with open ends with it.
    holders.0.retain(|holder| holder.pid != std::process::id());
    note(root, &farewell(open_files, &holders));
    // One that did not answer before was revoked then.
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
        "so its connection was cut: what it had open is lost, and fails with ENOTCONN"
    } else {
        "so it was detached: whoever uses it goes on waiting for the daemon"
    };
    note(root, &format!("{why}, {done}"));
    Ok(false)
}

/// What is said of a mount that was taken away from somebody.
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
