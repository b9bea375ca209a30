//! A volume that a command opens for itself: what is said if it cannot be opened or closed.

use crate::message::{Failure, Result};
use holdfast::{Volume, VolumeError};
use std::{io, path::Path};

/// A volume that cannot be opened.
pub(crate) fn volume_failure(image: &Path, error: &VolumeError) -> Failure {
    let failure = Failure::new(error.to_string()).at(image);
    match error.kind() {
        io::ErrorKind::NotFound => failure.hint("holdfast mkfs makes volumes"),
        io::ErrorKind::ResourceBusy => failure.hint("on a mounted volume cp(1) does as well"),
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
