//! File systems on an image file or a block device.

pub(crate) mod builder;
pub(crate) mod error;
pub(crate) mod info;
pub(crate) mod shared;

use std::fmt;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use holdfast_volume::VolumeStore;

use crate::FileSystem;

use error::VolumeError;
use info::VolumeInfo;
use shared::Shared;

/// A file system on an image file or a block device. All calls of [`FileSystem`] are its own.
///
/// Changes are durable after [`FileSystem::sync`] or [`File::sync_all`](crate::File::sync_all),
/// else a few seconds later. After a crash the volume has a state that it had at or after that
/// moment. It can be open in one process at a time. [`Volume::close`] ends it cleanly; dropping a
/// volume tries to.
///
/// ```
/// # fn main() -> Result<(), holdfast::VolumeError> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data.hf");
/// use holdfast::Volume;
///
/// let volume = Volume::builder().size(64 << 20).create(&path)?;
/// volume.create_dir_all("/mail/new")?;
/// volume.write("/mail/new/1", "Dear ...")?;
/// volume.close()?;
///
/// let volume = Volume::open(&path)?;
/// assert_eq!(volume.read_to_string("/mail/new/1")?, "Dear ...");
/// # Ok(())
/// # }
/// ```
pub struct Volume {
    fs: FileSystem,
    store: Arc<VolumeStore>,
    /// Is it closed, or open for reading only?
    closed: bool,
    /// Set if others may have it open.
    shared: Option<Arc<Shared>>,
}

impl Volume {
    /// Reads the superblock of a volume, without opening it. Its counts are those of the last
    /// checkpoint; [`VolumeInfo::clean`] is true if there were no changes after that.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn inspect(path: impl AsRef<Path>) -> Result<VolumeInfo, VolumeError> {
        VolumeInfo::read(path.as_ref())
    }

    /// The current state of the volume.
    #[must_use]
    pub fn info(&self) -> VolumeInfo {
        VolumeInfo::of(&self.store.info())
    }

    /// Grows the volume to `bytes`, also while it is in use. An image file grows with it; a block
    /// device must have grown already. After a crash it has the old size or the new one. Returns
    /// the new size.
    ///
    /// ```
    /// # fn main() -> Result<(), holdfast::VolumeError> {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data.hf");
    /// let volume = holdfast::Volume::builder().size(64 << 20).create(&path)?;
    /// assert_eq!(volume.grow(96 << 20)?, 96 << 20);
    /// assert!(volume.grow(64 << 20).is_err(), "volumes do not shrink");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `EINVAL` if it would shrink; what the host answers; `EIO`.
    pub fn grow(&self, bytes: u64) -> Result<u64, VolumeError> {
        Ok(self.store.grow(bytes)?)
    }

    /// Discards free blocks within this range of bytes, in runs of at least `least` bytes. An image
    /// file gives the space back to its host. Returns the discarded bytes.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the device takes no discards; `EIO`.
    pub fn trim(&self, within: Range<u64>, least: u64) -> Result<u64, VolumeError> {
        Ok(self.store.trim(within, least)?)
    }

    /// Why the volume has failed and is not written to any more; `None` if it has not failed.
    /// Durable changes are there when it is opened again.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.store.failure_reason()
    }

    /// The store below the file system, which a mount grows and trims while it serves the file
    /// system.
    #[must_use]
    pub fn store(&self) -> Arc<VolumeStore> {
        Arc::clone(&self.store)
    }

    /// The device, if [`open_shared`](crate::VolumeBuilder::open_shared) opened it.
    #[must_use]
    pub fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.clone()
    }

    /// A handle to the file system, which can be cloned. Handles fail after the volume is closed.
    #[must_use]
    pub fn file_system(&self) -> &FileSystem {
        &self.fs
    }

    /// Makes everything durable and marks the volume as closed, so that the next open has nothing
    /// to replay.
    ///
    /// # Errors
    /// `EIO`, `ENOSPC`: the volume is as after a crash.
    pub fn close(mut self) -> Result<(), VolumeError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), VolumeError> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        let synced = self.fs.core().close();
        // Also if `synced` is an error: a failed store returns its reason, and any other is closed.
        self.store.close()?;
        Ok(synced?)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // A drop cannot return the error; `close` does.
        let _ = self.end();
    }
}

impl Deref for Volume {
    type Target = FileSystem;

    fn deref(&self) -> &FileSystem {
        &self.fs
    }
}

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volume")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
