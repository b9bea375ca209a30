//! What a daemon inherits from the shell that mounts, and what a file system must not obey: limits of its processes.
//!
//! A file system outlives the shell, and serves others. So each soft limit is raised to the hard one, and those whose
//! excess ends a process or refuses what a user of the mount may do (sizes of files, processor time) are lifted wholly
//! where that is allowed. Limits of memory that are hard stay: they are how a daemon is kept small.

use crate::message::{Failure, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGXCPU, SIGXFSZ};
use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

/// Those that are lifted wholly.
const LIFTED: [(Resource, &str); 2] = [
    (Resource::Fsize, "size of files"),
    (Resource::Cpu, "processor time"),
];

/// Those that are raised as far as they may be.
const RAISED: [(Resource, &str); 7] = [
    (Resource::Nofile, "open descriptors"),
    (Resource::As, "address space"),
    (Resource::Data, "data"),
    (Resource::Memlock, "locked memory"),
    (Resource::Nproc, "threads"),
    (Resource::Sigpending, "queued signals"),
    (Resource::Msgqueue, "message queues"),
];

/// Leaves the limits of the shell behind. What cannot be raised is no reason not to mount; what it forbids is an
/// error of whichever call meets it, and no signal that ends the daemon.
pub(super) fn leave_limits() {
    for signal in [SIGXFSZ, SIGXCPU] {
        // Nobody asks whether it came: it is the default action that goes.
        if let Err(error) = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))) {
            tracing::info!(%error, signal, "a limit may end the daemon");
        }
    }
    for (resource, name) in LIFTED {
        let without = Rlimit {
            current: None,
            maximum: None,
        };
        // Only root may; others get what is the most for them.
        if setrlimit(resource, without).is_err() {
            raise(resource, name);
        }
    }
    for (resource, name) in RAISED {
        raise(resource, name);
    }
}

/// Can each byte of this image file be written, as far as the limits of this process are concerned?
///
/// # Errors
/// If it is larger than a file may be.
pub(super) fn check_size(image: &Path) -> Result<()> {
    // A device has no such limit, and what is not there will be told of when it is opened.
    let len = fs::metadata(image).map_or(0, |found| if found.is_file() { found.len() } else { 0 });
    match getrlimit(Resource::Fsize).current {
        Some(most) if len > most => Err(too_large(most).at(image)),
        _ => Ok(()),
    }
}

/// Tells of a limit of file sizes where that is why a file could not be made.
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

/// The soft limit becomes the hard one.
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
        for (resource, name) in LIFTED.into_iter().chain(RAISED) {
            let Rlimit { current, maximum } = getrlimit(resource);
            assert_eq!(current, maximum, "{name}");
        }
    }
}
