//! Failures for errors of mounting and unmounting.

use super::point::stale;
use crate::message::Failure;
use holdfast_fuse::mount::{MountError, UmountError};
use std::{io, path::Path};

pub(crate) fn mount_failure(error: &MountError) -> Failure {
    match error {
        MountError::NoDevice => Failure::new("is not there: No such file or directory")
            .about("/dev/fuse")
            .hint("modprobe fuse; for a container: --device /dev/fuse --cap-add SYS_ADMIN"),
        MountError::DeviceRefused { source } => Failure::new(format!("cannot be opened: {source}"))
            .about("/dev/fuse")
            .hint(device_hint(source)),
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
                .hint("fuseblk=auto uses it if possible")
        }
        MountError::NotPermitted { dir } => Failure::new("mounting is not permitted")
            .at(dir)
            .hint("run as root, or install fuse3, which has fusermount3 for other users"),
        MountError::NoHelper => Failure::new("only root mounts without fusermount3")
            .hint("install fuse3, or run as root"),
        MountError::NoUring { reason } => {
            Failure::new(format!("io_uring is not available: {reason}"))
                .hint("--transport auto uses it if it is available")
        }
        MountError::Queue { .. } => Failure::new(error).hint("--transport dev"),
        MountError::Refused { dir, source } => {
            let failure = Failure::new(format!("mount(2) failed: {source}")).at(dir);
            match source.raw_os_error() {
                Some(libc::ENODEV) => failure.hint("load the module: modprobe fuse"),
                Some(libc::EINVAL) => failure.hint("leave options out; dmesg(1) may tell which"),
                _ => failure,
            }
        }
        MountError::Helper { message } => {
            let failure = Failure::new(error);
            match helper_hint(message) {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        // Their texts include the remedy, if there is one.
        _ => Failure::new(error),
    }
}

/// The failure for a directory where nothing is mounted.
pub(crate) fn not_mounted(dir: &Path) -> Failure {
    Failure::new("nothing is mounted there")
        .at(dir)
        .hint("findmnt -t fuse.holdfast,fuseblk.holdfast lists what holdfast has mounted")
}

/// The hint for a message of fusermount3.
fn helper_hint(message: &str) -> Option<&'static str> {
    let hints = [
        (
            "device not found",
            "modprobe fuse; for a container: --device /dev/fuse",
        ),
        (
            "/dev/fuse",
            "modprobe fuse, if it is not there; else let others use it: chmod 666 /dev/fuse",
        ),
        (
            "user_allow_other",
            "add the line user_allow_other to /etc/fuse.conf, or leave allow_other out",
        ),
        (
            "Operation not permitted",
            "fusermount3 has to be root's and setuid; in a container: --cap-add SYS_ADMIN",
        ),
    ];
    let found = hints.iter().find(|(part, _)| message.contains(part));
    found.map(|(_, hint)| *hint)
}

/// The hint if `/dev/fuse` exists but cannot be opened.
fn device_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        // The node exists without a driver.
        Some(libc::ENODEV | libc::ENXIO) => "load the module: modprobe fuse",
        // The error of a container's device rules.
        Some(libc::EPERM) => "for a container: --device /dev/fuse --cap-add SYS_ADMIN",
        _ => "run as root, or let others use the device, as most systems do: chmod 666 /dev/fuse",
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
        UmountError::NotMounted { dir } => not_mounted(dir),
        UmountError::Foreign { dir, fs_type } => {
            Failure::new(format!("is a mount of type {fs_type}, not one of holdfast"))
                .at(dir)
                .hint(format!("umount {}", dir.display()))
        }
        UmountError::NotPermitted { dir } => Failure::new("unmounting is not permitted")
            .at(dir)
            .hint("run as root, or as the user that mounted it"),
        UmountError::Refused { dir, source } => {
            let failure = Failure::new(format!("umount(2) failed: {source}")).at(dir);
            failure.hint("--lazy detaches it; dmesg(1) may tell why")
        }
        _ => Failure::new(error),
    }
}
