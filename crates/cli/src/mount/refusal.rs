//! The mount's errors in this command's words: a message and a remedy.

use super::point::stale;
use crate::message::Failure;
use holdfast_fuse::mount::{MountError, UmountError};

pub(crate) fn mount_failure(error: &MountError) -> Failure {
    match error {
        MountError::NoDevice => Failure::new("there is no /dev/fuse")
            .hint("modprobe fuse; in a container, give it the device"),
        MountError::DeviceRefused { source } => Failure::new(format!("cannot be opened: {source}"))
            .about("/dev/fuse")
            .hint("run as root"),
        MountError::NotADirectory { dir } => Failure::new("is not a directory").at(dir),
        MountError::NotEmpty { dir } => Failure::new("is not empty, and the mount would hide that")
            .at(dir)
            .hint("choose another directory, or allow it: -o nonempty"),
        MountError::AlreadyMounted {
            dir,
            source_name,
            fs_type,
        } => Failure::new(format!(
            "{source_name} ({fs_type}) is mounted there already"
        ))
        .at(dir)
        .hint(format!(
            "unmount it first: holdfast umount {}",
            dir.display()
        )),
        MountError::Stale { dir } => stale(dir),
        MountError::NoBlockDevice { dir, reason } => {
            Failure::new(format!("cannot be mounted as fuseblk: {reason}"))
                .at(dir)
                .hint("fuseblk=auto takes it where it is to be had")
        }
        MountError::NotPermitted { dir } => Failure::new("mounting is not permitted")
            .at(dir)
            .hint("run as root, or install fuse3, whose fusermount3 mounts for others"),
        MountError::NoHelper => Failure::new("only root mounts without fusermount3")
            .hint("install fuse3, or run as root"),
        MountError::NoUring { reason } => {
            Failure::new(format!("io_uring is not to be had: {reason}"))
                .hint("--transport auto takes it where it is to be had")
        }
        MountError::Queue { .. } => Failure::new(error.to_string()).hint("--transport dev"),
        MountError::Refused { dir, source } => {
            Failure::new(format!("mount(2) failed: {source}")).at(dir)
        }
        // Their texts hold the remedy, where there is one.
        _ => Failure::new(error.to_string()),
    }
}

pub(crate) fn umount_failure(error: &UmountError) -> Failure {
    match error {
        UmountError::Busy { dir, holders } => {
            Failure::new(format!("is in use {holders}")).at(dir).hint(
                "end them, or detach it now and let it go with its last user: --lazy; \
                 --force takes it away from them",
            )
        }
        UmountError::NotMounted { dir } => Failure::new("nothing is mounted there").at(dir),
        UmountError::Foreign { dir, fs_type } => {
            Failure::new(format!("is a mount of type {fs_type}, not one of holdfast"))
                .at(dir)
                .hint(format!("umount {}", dir.display()))
        }
        UmountError::NotPermitted { dir } => Failure::new("unmounting is not permitted")
            .at(dir)
            .hint("run as root, or as the user who mounted it"),
        UmountError::Refused { dir, source } => {
            Failure::new(format!("umount(2) failed: {source}")).at(dir)
        }
        _ => Failure::new(error.to_string()),
    }
}
