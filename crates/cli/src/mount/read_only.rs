//! Is the mount read-only? The kernel says so, and mount(8) may change that without a word to the
//! daemon: for a mount as `fuseblk`, or where its helper is not installed. So the daemon asks the
//! kernel before it works by itself, and takes a change that the kernel passes on.

use holdfast::{Options, core::FileSystem};
use holdfast_fuse::mount::mounts;
use std::{path::Path, sync::OnceLock};

/// A mount of the daemon's, with the option `read_only` of its file system.
pub(super) struct ReadOnly {
    fs: FileSystem,
    /// The mount's connection, once it is live.
    connection: OnceLock<u32>,
    /// Is what is mounted open for reading only?
    fixed: bool,
}

impl ReadOnly {
    /// `fixed`: what is mounted is open for reading only.
    pub(super) fn new(fs: FileSystem, fixed: bool) -> Self {
        Self {
            fs,
            connection: OnceLock::new(),
            fixed,
        }
    }

    /// The mount is live at this path, which has no links.
    pub(super) fn attach(&self, mount_point: &Path) {
        let mounts = mounts().unwrap_or_default();
        let mut mounts = mounts.iter().rev();
        if let Some(own) = mounts.find(|it| it.mount_point == mount_point) {
            // There is one mount in a daemon's life.
            let _ = self.connection.set(own.connection());
        }
    }

    /// Is what is mounted open for reading only, until it is mounted anew?
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Changes the option, unless what is mounted is open for reading only.
    pub(super) fn set(&self, read_only: bool) {
        let options = self.fs.options();
        if !self.fixed && options.read_only != read_only {
            self.fs.set_options(Options {
                read_only,
                ..options
            });
        }
    }

    /// Sets the option as the kernel has it. Where the mount table does not tell, it stays.
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
