//! Keeping the option `read_only` in step with the kernel. mount(8) may change it without notice to
//! the daemon: for a mount as `fuseblk`, or if its helper is not installed. So the daemon reads
//! /proc/self/mountinfo before it changes the volume on its own, and follows changes that the
//! kernel reports.

use holdfast::{Options, engine::FileSystem};
use holdfast_fuse::mount::mounts;
use std::{path::Path, sync::OnceLock};

/// The read-only state of the daemon's mount.
pub(super) struct ReadOnly {
    fs: FileSystem,
    /// The mount's connection, once it is live.
    connection: OnceLock<u32>,
    /// Is the source open for reading only?
    fixed: bool,
}

impl ReadOnly {
    /// `fixed`: the source is open for reading only.
    pub(super) fn new(fs: FileSystem, fixed: bool) -> Self {
        Self {
            fs,
            connection: OnceLock::new(),
            fixed,
        }
    }

    /// Sets the path of the live mount, which has no links.
    pub(super) fn attach(&self, mount_point: &Path) {
        let mounts = mounts().unwrap_or_default();
        let mut mounts = mounts.iter().rev();
        if let Some(own) = mounts.find(|it| it.mount_point == mount_point) {
            // Set once in a daemon's life.
            let _ = self.connection.set(own.connection());
        }
    }

    /// Is the source open for reading only, so that it must be mounted again to be changed?
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Sets the option, unless the source is open for reading only.
    pub(super) fn set(&self, read_only: bool) {
        let options = self.fs.options();
        if !self.fixed && options.read_only != read_only {
            self.fs.set_options(Options {
                read_only,
                ..options
            });
        }
    }

    /// Sets the option to the state in the mount table, if the mount is found there.
    pub(super) fn follow(&self) {
        let (Some(&connection), Ok(mounts)) = (self.connection.get(), mounts()) else {
            return;
        };
        let mut mounts = mounts.iter();
        if let Some(own) = mounts.find(|it| it.is_fuse() && it.connection() == connection) {
            let mut words = own.super_options.split(',');
            self.set(words.any(|word| word == "ro"));
        }
    }
}
