//! A volume that a command opens for itself: what is said if it cannot be opened or closed.

use crate::message::{Failure, Result};
use holdfast::{Volume, VolumeError};
use std::{io, path::Path};

/// What shows the devices that there are.
pub(crate) const DEVICES_HINT: &str = "lsblk lists the block devices of this host";

/// A volume that cannot be opened.
pub(crate) fn volume_failure(image: &Path, error: &VolumeError) -> Failure {
    let failure = Failure::new(error.to_string()).at(image);
    match error.kind() {
        io::ErrorKind::ResourceBusy => failure.hint("on a mounted volume cp(1) does as well"),
        _ => hint_at_opening(failure, image, error.errno().raw()),
    }
}

/// What to do about a file or device that cannot be opened, whatever for.
pub(crate) fn hint_at_opening(failure: Failure, image: &Path, errno: i32) -> Failure {
    match errno {
        libc::ENOENT if image.starts_with("/dev") => failure.hint(DEVICES_HINT),
        libc::ENODEV => failure.hint(DEVICES_HINT),
        libc::ENOENT => failure.hint("check the path; holdfast mkfs makes volumes"),
        libc::EACCES | libc::EPERM => failure.hint("run as root, or as a user who may open it"),
        libc::EISDIR | libc::EINVAL => failure.hint("a volume is an image file or a block device"),
        libc::EROFS => failure.hint("only reading it works: mount -o ro, fsck without --repair"),
        libc::EUCLEAN => {
            failure.hint("holdfast fsck looks closer; holdfast mkfs makes a new, empty volume")
        }
        _ => failure,
    }
}

/// Closes the volume after the work on it, however that ended, and gives its result. If both failed, the failure of the
/// work is printed, and that of closing is given: it says what of the work is lost, and mostly why it failed.
pub(crate) fn close_after<T>(volume: Volume, image: &Path, work: Result<T>) -> Result<T> {
    let Err(error) = volume.close() else {
        return work;
    };
    if let Err(failure) = work {
        failure.print();
    }
    Err(close_failure(&error).at(image))
}

/// A volume that is not closed cleanly.
pub(crate) fn close_failure(error: &VolumeError) -> Failure {
    Failure::new(format!("cannot be closed cleanly: {error}"))
        .hint("what was durable before is there when it is opened again")
}
