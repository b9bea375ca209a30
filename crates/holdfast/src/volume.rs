//! File systems that last: on an image file or a block device.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdfast_device::{BlockDevice, FileDevice, FileOptions};
use holdfast_volume::{FormatOptions, Label, OpenOptions, VolumeStore};

use crate::types::Errno;
use crate::{FileSystem, Options};

/// The sizes of a new image that nobody gave a size: what is free where it lies, within these bounds.
const SIZE_MIN: u64 = 64 << 20;
const SIZE_MAX: u64 = 1 << 40;
/// Sizes are whole multiples of this.
const SIZE_UNIT: u64 = 1 << 20;

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
    closed: bool,
}

impl Volume {
    /// Opens the volume in an image file or on a block device.
    ///
    /// # Errors
    /// If the file is not there, holds no volume, is in use (the message names by whom), or is
    /// damaged.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::builder().open(path)
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
    pub fn close(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        self.fs.core().close()?;
        self.store.close().map_err(told)
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

/// How a volume is made and opened; begun by [`Volume::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `open` or `create`"]
pub struct VolumeBuilder {
    size: Option<u64>,
    format: FormatOptions,
    open: OpenOptions,
    options: Options,
}

impl VolumeBuilder {
    /// Bytes of a new image file, which is sparse: it takes what is written. Without this, what is free where it
    /// lies, but at most 1 TiB.
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// The name of a new volume, at most 63 bytes.
    ///
    /// # Errors
    /// `EINVAL` if it is longer or has a NUL.
    pub fn label(mut self, label: &str) -> io::Result<Self> {
        self.format.label = Label::new(label).ok_or(Errno::EINVAL)?;
        Ok(self)
    }

    /// Bytes of a new volume's journal; chosen by its size without this.
    pub fn journal(mut self, bytes: u64) -> Self {
        self.format.journal = Some(bytes);
        self
    }

    /// How often changes become durable by themselves; without this every 5 seconds.
    pub fn commit_every(mut self, interval: Duration) -> Self {
        self.open.commit_every = Some(interval);
        self
    }

    /// The options of mount(8): access times, read-only, a new root's owner and mode, ...
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Makes an empty volume in a new image file, and opens it.
    ///
    /// # Errors
    /// `EEXIST` if there is such a file; what the host answers; `EINVAL` for a size or a journal
    /// that makes no volume.
    pub fn create(self, path: impl AsRef<Path>) -> io::Result<Volume> {
        let path = path.as_ref();
        let size = match self.size {
            Some(size) => size,
            None => free_beside(path)?,
        };
        let size = size / SIZE_UNIT * SIZE_UNIT;
        let device = FileDevice::create(path, size, FileOptions::default()).map_err(told)?;
        let device: Arc<dyn BlockDevice> = Arc::new(device);
        if let Err(error) = holdfast_volume::format(&device, &self.format) {
            // It was not there before, and holds nothing.
            let _ = std::fs::remove_file(path);
            return Err(told(error));
        }
        self.open_on(device)
    }

    /// Opens the volume in an image file or on a block device.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open(self, path: impl AsRef<Path>) -> io::Result<Volume> {
        let device = FileDevice::open(path.as_ref(), FileOptions::default()).map_err(told)?;
        self.open_on(Arc::new(device))
    }

    /// Opens the volume in this image file, made if it is not there.
    ///
    /// # Errors
    /// As [`create`](Self::create) and [`open`](Self::open).
    pub fn open_or_create(self, path: impl AsRef<Path>) -> io::Result<Volume> {
        match self.clone().create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open(path),
            opened => opened,
        }
    }

    /// Opens the volume on any device.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open_on(self, device: Arc<dyn BlockDevice>) -> io::Result<Volume> {
        let store = Arc::new(VolumeStore::open(device, &self.open).map_err(told)?);
        let fs = FileSystem::with_store(store.clone(), self.options)?;
        Ok(Volume {
            fs,
            store,
            closed: false,
        })
    }
}

/// An error with its whole text and the kind of its number.
fn told<E>(error: E) -> io::Error
where
    E: std::error::Error + Send + Sync + 'static + Numbered,
{
    let kind = io::Error::from(error.number()).kind();
    io::Error::new(kind, error)
}

/// An error that has a number of the operating system's.
trait Numbered {
    fn number(&self) -> Errno;
}

impl Numbered for holdfast_volume::Error {
    fn number(&self) -> Errno {
        self.errno()
    }
}

impl Numbered for holdfast_device::DeviceError {
    fn number(&self) -> Errno {
        self.errno()
    }
}

/// Bytes that are free where a file is to lie, within the bounds of sizes.
fn free_beside(path: &Path) -> io::Result<u64> {
    let absolute = std::path::absolute(path)?;
    let dir = absolute.parent().unwrap_or(&absolute);
    let free = rustix::fs::statvfs(dir)?;
    Ok((free.f_bavail * free.f_frsize).clamp(SIZE_MIN, SIZE_MAX))
}
