//! Failures of opening and closing a volume in a command.

use crate::message::{Failure, Result};
use holdfast::{Caller, Caps, FileSystem, Volume, VolumeError};
use std::{io, path::Path};

/// A hint for a missing device.
pub(crate) const DEVICES_HINT: &str = "lsblk lists the block devices of this host";

/// Opens a volume.
pub(crate) fn open(image: &Path) -> Result<Volume> {
    let opened = Volume::builder().caller(this_user()).open(image);
    opened.map_err(|error| volume_failure(image, &error))
}

/// Opens a volume for reading only.
pub(crate) fn open_read_only(image: &Path) -> Result<Volume> {
    let opened = Volume::builder().caller(this_user()).open_read_only(image);
    opened.map_err(|error| volume_failure(image, &error))
}

/// This user, with all rights in a volume: the image is a file that the user may read or write.
fn this_user() -> Caller {
    Caller {
        caps: Caps::all(),
        ..Caller::current()
    }
}

/// The file system of a volume, for work that makes files in it. Root sets their owners. What
/// another user makes is that user's, as on a mount.
pub(crate) fn to_make_files_in(volume: &Volume) -> FileSystem {
    let mut user = this_user();
    if user.uid != 0 {
        user.caps.remove(Caps::CHOWN);
    }
    volume.as_user(user)
}

/// The failure for a volume that cannot be opened.
pub(crate) fn volume_failure(image: &Path, error: &VolumeError) -> Failure {
    let failure = Failure::new(error).at(image);
    match error.kind() {
        io::ErrorKind::ResourceBusy => failure.hint("on a mounted volume cp(1) does as well"),
        _ => hint_at_opening(failure, image, error.errno().raw()),
    }
}

/// Adds a hint for the error of opening a file or device.
pub(crate) fn hint_at_opening(failure: Failure, image: &Path, errno: i32) -> Failure {
    match errno {
        libc::ENOENT if image.starts_with("/dev") => failure.hint(DEVICES_HINT),
        libc::ENODEV => failure.hint(DEVICES_HINT),
        libc::ENOENT => failure.hint("check the path; holdfast mkfs makes volumes"),
        libc::EACCES | libc::EPERM => failure.hint("run as root, or as a user that may open it"),
        libc::EISDIR | libc::EINVAL => failure.hint("a volume is an image file or a block device"),
        libc::EROFS => failure.hint("only reading it works: mount -o ro, fsck without --repair"),
        libc::EUCLEAN => {
            failure.hint("holdfast fsck looks closer; holdfast mkfs makes a new, empty volume")
        }
        _ => failure,
    }
}

/// Closes the volume and returns the result of the work on it. If both failed, the failure of the
/// work is printed, and that of closing is returned.
pub(crate) fn close_after<T>(volume: Volume, image: &Path, work: Result<T>) -> Result<T> {
    let Err(error) = volume.close() else {
        return work;
    };
    if let Err(failure) = work {
        failure.print();
    }
    Err(close_failure(&error).at(image))
}

/// The failure for a volume that cannot be closed cleanly.
pub(crate) fn close_failure(error: &VolumeError) -> Failure {
    Failure::new(format!("cannot be closed cleanly: {error}"))
        .hint("durable changes are there when it is opened again")
}
