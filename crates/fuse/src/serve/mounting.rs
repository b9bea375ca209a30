//! Mounting a file system of the core.

use super::{Control, CoreOperations, InfoSource};
use crate::{Config, Notifier, Operations, Session, mount::MountError};
use holdfast_core::FileSystem;
use std::{path::Path, sync::Arc};

/// Mounts a file system of the core at `dir`, and keeps the kernel's caches true to changes
/// made through the library.
///
/// # Errors
/// [`MountError`]; nothing stays mounted.
pub fn mount(
    fs: &FileSystem,
    dir: &Path,
    config: &Config,
    info: Option<InfoSource>,
) -> Result<Session, MountError> {
    mount_with_control(fs, dir, config, info, None)
}

/// As [`mount`], with a [`Control`] for ioctl(2) on the mount's root.
///
/// # Errors
/// [`MountError`]; nothing stays mounted.
pub fn mount_with_control(
    fs: &FileSystem,
    dir: &Path,
    config: &Config,
    info: Option<InfoSource>,
    control: Option<Arc<dyn Control>>,
) -> Result<Session, MountError> {
    let notifier = Notifier::new();
    let operations = Arc::new(CoreOperations::new(fs.clone(), config, notifier.clone()));
    *operations.info.write() = info;
    *operations.control.write() = control;
    let session = Session::mount_with(operations.clone(), dir, config, notifier);
    if session.is_err() {
        operations.destroy();
    }
    session
}
