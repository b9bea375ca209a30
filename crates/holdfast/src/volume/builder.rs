use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdfast_device::{Access, BlockDevice, Content, FileDevice, SECTOR};
use holdfast_volume::{FormatOptions, Label, OpenOptions, VolumeStore};

use super::Volume;
use super::error::VolumeError;
use super::shared::Shared;
use crate::types::{Caller, Errno};
use crate::{FileSystem, Options};

/// Bounds of the default size of a new image, which is the free space of its file system.
const SIZE_MIN: u64 = 64 << 20;
const SIZE_MAX: u64 = 1 << 40;
/// Sizes are whole multiples of this.
const SIZE_UNIT: u64 = 1 << 20;

/// The host's directory of devices.
const DEVICES: &str = "/dev";

/// Options for making and opening a volume; see [`Volume::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `open` or `create`"]
pub struct VolumeBuilder {
    size: Option<u64>,
    format: FormatOptions,
    force: bool,
    open: OpenOptions,
    options: Options,
    caller: Option<Caller>,
}

impl Volume {
    /// Opens the volume in an image file or on a block device.
    ///
    /// # Errors
    /// If the file does not exist, holds no volume, is damaged, or is in use (the message names the
    /// process).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, VolumeError> {
        Self::builder().open(path)
    }

    /// Opens a volume for reading only, as [`VolumeBuilder::open_read_only`].
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, VolumeError> {
        Self::builder().open_read_only(path)
    }

    /// Options for making and opening a volume.
    pub fn builder() -> VolumeBuilder {
        VolumeBuilder::default()
    }
}

impl VolumeBuilder {
    /// Bytes of a new image file, which is sparse. Without this, the free space of its file system,
    /// but at most 1 TiB.
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// The name of a new volume, at most 63 bytes.
    ///
    /// # Errors
    /// `EINVAL` if it is longer or has a NUL.
    pub fn label(mut self, label: &str) -> Result<Self, VolumeError> {
        self.format.label = Label::new(label).ok_or(Errno::EINVAL)?;
        Ok(self)
    }

    /// Bytes of a new volume's journal; chosen by its size without this.
    pub fn journal(mut self, bytes: u64) -> Self {
        self.format.journal = Some(bytes);
        self
    }

    /// The approximate and largest number of groups of a new volume; without this, groups have 126
    /// MiB each.
    pub fn groups(mut self, number: u64) -> Self {
        self.format.groups = Some(number);
        self
    }

    /// Lets [`format`](Self::format) overwrite existing content.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// The longest time until changes become durable without a sync; without this 5 seconds.
    pub fn commit_every(mut self, interval: Duration) -> Self {
        self.open.commit_every = Some(interval);
        self
    }

    /// The options of mount(8): access times, read-only, a new root's owner and mode, ...
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The caller that the file system handle acts for; without this, the thread that opens the
    /// volume. The root directory of a new volume belongs to this user and group, unless the
    /// [options](Self::options) name others.
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Makes an empty volume in a new image file, and opens it.
    ///
    /// # Errors
    /// `EEXIST` if there is such a file; errors of the host. `EINVAL` for an invalid size or
    /// journal size. `ENODEV` below `/dev`, where a new image file would be a typing error. After
    /// an error no file is left.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Volume, VolumeError> {
        let path = path.as_ref();
        if std::fs::symlink_metadata(path).is_err() {
            refuse_among_devices(path)?;
        }
        let size = match self.size {
            Some(size) => size,
            None => free_beside(path)?,
        };
        // Check the size before rounding, so that the message has the number given.
        holdfast_volume::needs(size, &self.format)?;
        let size = size / SIZE_UNIT * SIZE_UNIT;
        let file = FileDevice::create(path, size)?;
        let made = self.format_on(file, path);
        if made.is_err() {
            // The file is new and empty. The first error matters.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    /// Makes an empty volume in an open file or device, and opens it. Checks for space on the host
    /// before the first write.
    fn format_on(self, file: FileDevice, path: &Path) -> Result<Volume, VolumeError> {
        let size = self
            .size
            .map_or(file.size(), |size| size / SIZE_UNIT * SIZE_UNIT);
        let needs = holdfast_volume::needs(size, &self.format)?;
        if !file.is_block_device() {
            file.preallocate(needs.head)?;
            check_room(&file, path, size, needs)?;
        }
        if size > file.size() {
            file.resize(size)?;
        }
        let device: Arc<dyn BlockDevice> = Arc::new(file);
        holdfast_volume::format(&device, &self.format)?;
        self.open_on(device)
    }

    /// Makes an empty volume in a new or existing image file, or on a block device, and opens it.
    /// An existing image file keeps its size, or gets the given size if that is larger.
    ///
    /// # Errors
    /// `EEXIST` if there is content, which the message names, unless it may be
    /// [overwritten](Self::force): a volume, another file system, a partition table, in an image
    /// file anything but zeros. `EINVAL` for an invalid size or layout; `ENODEV` below `/dev`
    /// unless it is a device. `ENOSPC` if the host has no space for the first writes: existing
    /// content stays then. Otherwise as [`Volume::open`].
    pub fn format(self, path: impl AsRef<Path>) -> Result<Volume, VolumeError> {
        let path = path.as_ref();
        match self.clone().create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
        if std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
            refuse_among_devices(path)?;
        }
        let file = FileDevice::open(path, Access::ReadWrite)?;
        let content = holdfast_device::content(&file)?;
        let in_the_way = match content {
            Content::Known(name) => Some(name),
            // A file with unknown content may be precious; a block device is accepted.
            Content::Unknown if !file.is_block_device() => Some("something other than zeros"),
            // The file is shorter than a sector, or has bytes after the last one.
            _ if !file.is_block_device() && std::fs::metadata(path)?.len() != file.size() => {
                Some("something other than zeros")
            }
            Content::Unknown | Content::Nothing => None,
        };
        if let Some(name) = in_the_way.filter(|_| !self.force) {
            let text = format!("{} holds {name}", file.describe());
            return Err(VolumeError::new(Errno::EEXIST, text));
        }
        let now = file.size();
        if let Some(size) = self.size.map(|size| size / SIZE_UNIT * SIZE_UNIT)
            && now > size
        {
            let text = format!(
                "{} has {now} bytes, more than the {size} asked for: it is not cut; leave the size out, or remove it first",
                file.describe()
            );
            return Err(VolumeError::new(Errno::EINVAL, text));
        }
        self.format_on(file, path)
    }

    /// Opens the volume in an image file or on a block device for reading only: the journal is
    /// replayed in memory, and nothing is written. Several processes may do so at the same time.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open_read_only(mut self, path: impl AsRef<Path>) -> Result<Volume, VolumeError> {
        let device = FileDevice::open(path.as_ref(), Access::ReadOnly)?;
        let store = VolumeStore::open_read_only(Arc::new(device), &self.open)?;
        let store = Arc::new(store);
        self.options.read_only = true;
        let fs = self.file_system(&store)?;
        Ok(Volume {
            fs,
            store,
            closed: true,
            shared: None,
        })
    }

    /// Opens a volume that was closed for reading, which other processes may do as well, until
    /// [`exclude_others`](super::shared::Shared::exclude_others) makes it writable. `None` if it
    /// was not closed: it has to be opened for writing then.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open_shared(mut self, path: impl AsRef<Path>) -> Result<Option<Volume>, VolumeError> {
        let Some(shared) = Shared::open(path.as_ref())? else {
            return Ok(None);
        };
        self.options.read_only = true;
        let mut volume = self.open_on(Arc::clone(&shared.device) as _)?;
        volume.shared = Some(Arc::new(shared));
        Ok(Some(volume))
    }

    /// Opens the volume in an image file or on a block device.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Volume, VolumeError> {
        let device = FileDevice::open(path.as_ref(), Access::ReadWrite)?;
        self.open_on(Arc::new(device))
    }

    /// Opens the volume in this image file, which is made if it does not exist.
    ///
    /// # Errors
    /// As [`create`](Self::create) and [`open`](Self::open).
    pub fn open_or_create(self, path: impl AsRef<Path>) -> Result<Volume, VolumeError> {
        match self.clone().create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open(path),
            opened => opened,
        }
    }

    /// Opens the volume on any device.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open_on(self, device: Arc<dyn BlockDevice>) -> Result<Volume, VolumeError> {
        let store = Arc::new(VolumeStore::open(device, &self.open)?);
        let fs = self.file_system(&store)?;
        Ok(Volume {
            fs,
            store,
            closed: false,
            shared: None,
        })
    }

    /// The file system on an open volume. The root directory of a new volume gets its owner here.
    fn file_system(self, store: &Arc<VolumeStore>) -> io::Result<FileSystem> {
        let caller = self.caller.unwrap_or_else(Caller::current);
        FileSystem::for_caller(store.clone(), self.options, caller)
    }
}

/// Refuses to make an image file in `/dev`, where the name is meant to be a missing device. A
/// separate file system below `/dev`, such as `/dev/shm`, is allowed.
fn refuse_among_devices(path: &Path) -> Result<(), VolumeError> {
    let dir = std::path::absolute(path)?;
    let Ok(dir) = dir.parent().unwrap_or(&dir).canonicalize() else {
        return Ok(());
    };
    let device = |dir: &Path| std::fs::metadata(dir).map(|meta| meta.dev());
    if dir.starts_with(DEVICES) && device(&dir)? == device(Path::new(DEVICES))? {
        let text = format!(
            "{}: there is no such block device, and no image file is made below {DEVICES}",
            path.display()
        );
        return Err(VolumeError::new(Errno::ENODEV, text));
    }
    Ok(())
}

/// Refuses an image file if its host has no space for the first writes and the reserve of an open
/// volume.
fn check_room(
    file: &FileDevice,
    path: &Path,
    size: u64,
    needs: holdfast_volume::Needs,
) -> Result<(), VolumeError> {
    if std::fs::metadata(path)?.blocks() * SECTOR >= size {
        return Ok(());
    }
    let host = rustix::fs::statvfs(path)?;
    let left = host.f_bavail * host.f_frsize;
    // The store makes the same assumption.
    let counted = left - left / 64;
    if counted < needs.opened {
        let text = format!(
            "{} needs {} bytes of room to begin with, and the file system that it lies in has {left} left",
            file.describe(),
            needs.opened
        );
        return Err(VolumeError::new(Errno::ENOSPC, text));
    }
    Ok(())
}

/// The free space of the file system for a new file, within the bounds of sizes.
fn free_beside(path: &Path) -> Result<u64, VolumeError> {
    let absolute = std::path::absolute(path)?;
    let dir = absolute.parent().unwrap_or(&absolute);
    let free = rustix::fs::statvfs(dir)?;
    Ok((free.f_bavail * free.f_frsize).clamp(SIZE_MIN, SIZE_MAX))
}
