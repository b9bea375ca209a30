//! Keeping the option `read_only` in step with the kernel. mount(8) may change it without notice to
//! the daemon: for a mount as `fuseblk`, or if its helper is not installed. So the daemon reads
//! /proc/self/mountinfo before it changes the volume on its own, and follows changes that the
//! kernel reports.

use holdfast::{Options, Shared, VolumeError, engine::FileSystem};
use holdfast_fuse::mount::mounts;
use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

/// The read-only state of the daemon's mount.
pub(super) struct ReadOnly {
    fs: FileSystem,
    /// The mount's connection, once it is live.
    connection: OnceLock<u32>,
    /// Is the source open for reading only?
    fixed: bool,
    /// The volume that others may read while this mount is read-only.
    shared: Option<Arc<Shared>>,
}

impl ReadOnly {
    /// `fixed`: the source is open for reading only.
    pub(super) fn new(fs: FileSystem, fixed: bool, shared: Option<Arc<Shared>>) -> Self {
        Self {
            fs,
            connection: OnceLock::new(),
            fixed,
            shared,
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
    ///
    /// # Errors
    /// `EBUSY` for writing while others read the volume. The mount stays read-only.
    pub(super) fn set(&self, read_only: bool) -> Result<(), VolumeError> {
        let options = self.fs.options();
        if !self.fixed && options.read_only != read_only {
            if let (false, Some(shared)) = (read_only, &self.shared) {
                shared.exclude_others().inspect_err(|error| {
                    tracing::warn!("the mount stays read-only: {error}");
                })?;
            }
            self.fs.set_options(Options {
                read_only,
                ..options
            });
        }
        Ok(())
    }

    /// Sets the option to the state in the mount table, if the mount is found there.
    pub(super) fn follow(&self) {
        let (Some(&connection), Ok(mounts)) = (self.connection.get(), mounts()) else {
            return;
        };
        let mut mounts = mounts.iter();
        if let Some(own) = mounts.find(|it| it.is_fuse() && it.connection() == connection) {
            let mut words = own.super_options.split(',');
            // A refusal is logged: the daemon then refuses changes, whatever the kernel has.
            let _ = self.set(words.any(|word| word == "ro"));
        }
    }
}
