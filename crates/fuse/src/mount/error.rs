//! Errors of mounting and unmounting, with what can be done about each.

use super::{Holders, OptionError};
use std::{io, path::PathBuf};

/// Why there is no mount. The text says what can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// There is no `/dev/fuse`.
    #[error(
        "there is no /dev/fuse: load the module with `modprobe fuse`, or give the container the device"
    )]
    NoDevice,
    /// `/dev/fuse` may not be opened.
    #[error(
        "/dev/fuse may not be opened ({source}): run as root, or ask for permission to use the device"
    )]
    DeviceRefused {
        /// The system's error.
        source: io::Error,
    },
    /// There is no such directory.
    #[error("the mount point {dir:?} does not exist: make it with `mkdir -p`")]
    Missing {
        /// The mount point.
        dir: PathBuf,
    },
    /// The mount point is something else.
    #[error("the mount point {dir:?} is not a directory")]
    NotADirectory {
        /// The mount point.
        dir: PathBuf,
    },
    /// The directory has something in it.
    #[error(
        "the mount point {dir:?} is not empty: its files would be hidden (allow it with -o nonempty)"
    )]
    NotEmpty {
        /// The mount point.
        dir: PathBuf,
    },
    /// A FUSE file system is mounted there already.
    #[error(
        "{source_name:?} ({fs_type}) is mounted at {dir:?} already: unmount it with `holdfast umount`"
    )]
    AlreadyMounted {
        /// The mount point.
        dir: PathBuf,
        /// What is mounted.
        source_name: String,
        /// Its type.
        fs_type: String,
    },
    /// A mount as `fuseblk` was asked for, and cannot be had.
    #[error("{dir:?} cannot be mounted as fuseblk: {reason}")]
    NoBlockDevice {
        /// The mount point.
        dir: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The daemon behind the mount was killed.
    #[error("{dir:?} is the mount point of a daemon that is gone: clear it with `holdfast umount {}` or `umount -l {}`", .dir.display(), .dir.display())]
    Stale {
        /// The mount point.
        dir: PathBuf,
    },
    /// The mount point cannot be looked at.
    #[error("the mount point {dir:?} cannot be used: {source}")]
    Unusable {
        /// The mount point.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// mount(2) says no.
    #[error(
        "mounting at {dir:?} is not permitted: run as root, or install fuse3 for `fusermount3`"
    )]
    NotPermitted {
        /// The mount point.
        dir: PathBuf,
    },
    /// mount(2) failed otherwise.
    #[error("mounting at {dir:?} failed: {source}")]
    Refused {
        /// The mount point.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An ordinary user needs the helper.
    #[error(
        "only root mounts without `fusermount3`, which is not installed: install fuse3, or run as root"
    )]
    NoHelper,
    /// The helper failed.
    #[error("fusermount3 failed: {message}")]
    Helper {
        /// What it said.
        message: String,
    },
    /// The kernel speaks an older protocol.
    #[error("the kernel's FUSE (7.{minor}) is too old: Linux 5.4 (FUSE 7.31) or newer is needed")]
    KernelTooOld {
        /// The kernel's minor version.
        minor: u32,
    },
    /// The first exchange with the kernel failed.
    #[error("the first exchange with the kernel failed: {source}")]
    Handshake {
        /// The system's error.
        source: io::Error,
    },
    /// io_uring was demanded and is not to be had.
    #[error("FUSE over io_uring was demanded, but is not to be had: {reason}")]
    NoUring {
        /// Why.
        reason: String,
    },
    /// The kernel took io_uring on, and then refused a queue.
    #[error(
        "the kernel refused io_uring queue {qid}: {source}; mount with the /dev/fuse transport"
    )]
    Queue {
        /// The queue.
        qid: u16,
        /// The system's error.
        source: io::Error,
    },
    /// Threads or memory ran out.
    #[error("starting the session failed: {source}")]
    Start {
        /// The system's error.
        source: io::Error,
    },
    /// The file system refused to begin.
    #[error("the file system refused to begin: {errno}")]
    Init {
        /// Its error.
        errno: holdfast_types::Errno,
    },
    /// An option makes no sense.
    #[error(transparent)]
    Option(#[from] OptionError),
}

/// Why a mount is still there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UmountError {
    /// It is in use.
    #[error("{dir:?} is in use {holders}: end them, or detach it with --lazy")]
    Busy {
        /// The mount point.
        dir: PathBuf,
        /// The processes that use it.
        holders: Holders,
    },
    /// Nothing is mounted there.
    #[error("nothing is mounted at {dir:?}")]
    NotMounted {
        /// The directory.
        dir: PathBuf,
    },
    /// What is mounted there is not FUSE.
    #[error("what is mounted at {dir:?} is {fs_type}, not a FUSE file system")]
    Foreign {
        /// The directory.
        dir: PathBuf,
        /// Its type.
        fs_type: String,
    },
    /// The daemon lives.
    #[error("the daemon behind {dir:?} is alive: unmount it instead")]
    NotStale {
        /// The directory.
        dir: PathBuf,
    },
    /// Not allowed.
    #[error("unmounting {dir:?} is not permitted: run as root, or as the user who mounted it")]
    NotPermitted {
        /// The mount point.
        dir: PathBuf,
    },
    /// The helper failed.
    #[error("fusermount3 failed: {message}")]
    Helper {
        /// What it said.
        message: String,
    },
    /// umount(2) failed otherwise.
    #[error("unmounting {dir:?} failed: {source}")]
    Refused {
        /// The mount point.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
