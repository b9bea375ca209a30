//! Resource limits that the daemon inherits from the shell.
//!
//! A daemon outlives the shell and serves all users of the mount. So each soft limit is raised to
//! the hard one. Limits of file sizes and processor time would end the daemon or refuse allowed
//! operations; they are removed if this user may. Hard limits of memory stay, since they are a way
//! to bound the daemon.

use crate::message::{Failure, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGXCPU, SIGXFSZ};
use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

/// Limits to remove.
const REMOVED: [(Resource, &str); 2] = [
    (Resource::Fsize, "size of files"),
    (Resource::Cpu, "processor time"),
];

/// Limits to raise to the hard limit.
const RAISED: [(Resource, &str); 7] = [
    (Resource::Nofile, "open descriptors"),
    (Resource::As, "address space"),
    (Resource::Data, "data"),
    (Resource::Memlock, "locked memory"),
    (Resource::Nproc, "threads"),
    (Resource::Sigpending, "queued signals"),
    (Resource::Msgqueue, "message queues"),
];

/// Raises and removes the limits. A limit that stays is no error: calls beyond it fail, and no
/// signal ends the daemon.
pub(super) fn leave_limits() {
    for signal in [SIGXFSZ, SIGXCPU] {
        // The flag is never read: the handler only replaces the default action.
        if let Err(error) = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))) {
            tracing::info!(%error, signal, "a limit may end the daemon");
        }
    }
    for (resource, name) in REMOVED {
        let without = Rlimit {
            current: None,
            maximum: None,
        };
        // Only root may raise the hard limit.
        if setrlimit(resource, without).is_err() {
            raise(resource, name);
        }
    }
    for (resource, name) in RAISED {
        raise(resource, name);
    }
}

/// Checks the size of an image file against the limit of file sizes.
///
/// # Errors
/// If it is larger than a file may be.
pub(super) fn check_size(image: &Path) -> Result<()> {
    // A device has no such limit, and a missing file fails when it is opened.
    let len = fs::metadata(image).map_or(0, |found| if found.is_file() { found.len() } else { 0 });
    match getrlimit(Resource::Fsize).current {
        Some(most) if len > most => Err(too_large(most).at(image)),
        _ => Ok(()),
    }
}

/// Adds a hint if the limit of file sizes is why a file could not be made.
pub(super) fn hint_at_size(failure: Failure, number: Option<i32>) -> Failure {
    match getrlimit(Resource::Fsize).current {
        Some(most) if number == Some(libc::EFBIG) => {
            failure.hint(format!("files may have {most} bytes (ulimit -f): {REMEDY}"))
        }
        _ => failure,
    }
}

const REMEDY: &str = "mount from a shell without that limit";

fn too_large(most: u64) -> Failure {
    Failure::new(format!(
        "is larger than a file may be for this process, {most} bytes (ulimit -f)"
    ))
    .hint(REMEDY)
}

/// Raises the soft limit to the hard one.
fn raise(resource: Resource, name: &str) {
    let Rlimit { maximum, .. } = getrlimit(resource);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(resource, raised) {
        tracing::info!(%error, name, "a limit stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_as_high_as_they_may_be() {
        leave_limits();
        for (resource, name) in REMOVED.into_iter().chain(RAISED) {
            let Rlimit { current, maximum } = getrlimit(resource);
            assert_eq!(current, maximum, "{name}");
        }
    }
}
