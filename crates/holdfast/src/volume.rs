//! File systems that last: on an image file or a block device.

mod builder;
mod error;
mod info;

use std::fmt;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use holdfast_volume::VolumeStore;

use crate::FileSystem;

pub use builder::VolumeBuilder;
pub use error::VolumeError;
pub use info::VolumeInfo;

/// A file system on an image file or a block device. All calls of [`FileSystem`] are its own.
///
/// What was done is durable after [`FileSystem::sync`] or [`File::sync_all`](crate::File::sync_all), else a
/// few seconds later; after a crash the volume is as it was at some moment since then. It belongs to one
/// process at a time. [`Volume::close`] ends it cleanly; a volume that is dropped tries to.
///
/// ```
/// # fn main() -> std::io::Result<()> {
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
    /// Is nothing left to be written: is it closed, or only read?
    closed: bool,
}

impl Volume {
    /// Opens the volume in an image file or on a block device.
    ///
    /// # Errors
    /// If the file is not there, holds no volume, is in use (the message names by whom), or is
    /// damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, VolumeError> {
        Self::builder().open(path)
    }

    /// Opens a volume to look at it, as [`VolumeBuilder::open_read_only`].
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, VolumeError> {
        Self::builder().open_read_only(path)
    }

    /// What a volume says of itself, without opening it: its counts are those of its last
    /// checkpoint, and [`VolumeInfo::clean`] says whether anything came after that.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn inspect(path: impl AsRef<Path>) -> Result<VolumeInfo, VolumeError> {
        VolumeInfo::read(path.as_ref())
    }

    /// What it says of itself at this moment.
    #[must_use]
    pub fn info(&self) -> VolumeInfo {
        VolumeInfo::of(&self.store.info())
    }

    /// Lets the volume have `bytes` of its device, while it is used; an image file grows with it, a block
    /// device must have grown already. After a crash it has the old size or the new one. Gives the
    /// bytes that it has then.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
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

    /// Tells the device which blocks are free: those within these bytes of the volume, in runs of
    /// `least` bytes at least. An image file gives the space back to its host. Gives the bytes that were
    /// discarded.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the device takes no discards; `EIO`.
    pub fn trim(&self, within: Range<u64>, least: u64) -> Result<u64, VolumeError> {
        Ok(self.store.trim(within, least)?)
    }

    /// Why nothing is written to it any more; `None` as long as it has not failed. What was durable before is there when it
    /// is opened again.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.store.failure_reason()
    }

    /// What stands below the file system, for those who serve it: it can be grown and trimmed there.
    #[must_use]
    pub fn store(&self) -> Arc<VolumeStore> {
        Arc::clone(&self.store)
    }

    /// Begins with options: how to make a volume, how to open one.
    pub fn builder() -> VolumeBuilder {
        VolumeBuilder::default()
    }

    /// The file system: a handle to be cloned at will. None of them works on after the volume's end.
    #[must_use]
    pub fn file_system(&self) -> &FileSystem {
        &self.fs
    }

    /// Makes everything durable and marks the volume as closed, so that the next opening has nothing to
    /// replay.
    ///
    /// # Errors
    /// `EIO`, `ENOSPC`: it could not be done, and the volume is as after a crash.
    pub fn close(mut self) -> Result<(), VolumeError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), VolumeError> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        let synced = self.fs.core().close();
        // Also where that failed: a store that stopped tells why, and one that did not is closed.
        self.store.close()?;
        Ok(synced?)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Nobody is left to be told; whoever must know calls `close`.
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
