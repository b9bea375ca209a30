//! `volume:PATH`: the core over a volume, in this process.

use super::{Folder, MemoryTree, Target};
use anyhow::{Context, Result};
use holdfast_core::{FileSystem, Options};
use holdfast_device::{Access, BlockDevice, FileDevice};
use holdfast_types::{Errno, Ino};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of an image, which is sparse: as many as rivals are given.
const SIZE: u64 = 16 << 30;

/// An image file with its volume.
pub(crate) struct Image {
    /// The folder, if it is removed together with the image.
    folder: Option<Folder>,
    path: PathBuf,
    /// The file system's limit of memory, in bytes; the usual one if absent.
    cache: Option<u64>,
    /// The volume, as long as it is open.
    store: Mutex<Option<Arc<VolumeStore>>>,
}

/// A tree on a volume of its own, in a fresh folder beside `path`. It commits every five seconds.
/// `cache`: the file system's limit of memory, in bytes, if it is not the usual one.
///
/// # Errors
/// If the image cannot be made.
pub(crate) fn volume(path: &Path, cache: Option<u64>) -> Result<MemoryTree> {
    let kept = Kept::beside(path)?;
    let path = kept.image();
    tree(path, Some(kept.folder), cache)
}

/// As [`volume`], on a volume that is made anew over an image which is kept.
///
/// # Errors
/// If the image cannot be made, or used.
pub(crate) fn volume_over(image: &Path, cache: Option<u64>) -> Result<MemoryTree> {
    tree(image.to_owned(), None, cache)
}

/// Makes a volume on this image, which is made first if there is none.
fn tree(path: PathBuf, folder: Option<Folder>, cache: Option<u64>) -> Result<MemoryTree> {
    let device = match path.exists() {
        true => FileDevice::open(&path, Access::ReadWrite),
        false => FileDevice::create(&path, SIZE),
    };
    let device: Arc<dyn BlockDevice> = Arc::new(device.context("cannot make the image")?);
    holdfast_volume::format(&device, &FormatOptions::default())
        .context("cannot make the volume")?;
    let image = Image {
        folder,
        path,
        cache,
        store: Mutex::new(None),
    };
    let fs = image.open_on(device).context("cannot open the volume")?;
    Ok(MemoryTree::on(image, fs))
}

/// An image file that stays from tree to tree: what the host's file system gave it, it keeps, as
/// does the image of a rival's file system that stays mounted. It goes when this is dropped.
pub(crate) struct Kept {
    folder: Folder,
}

impl Kept {
    /// In a fresh folder beside `path`; there is no image yet.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn beside(path: &Path) -> Result<Self> {
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let folder = Folder::fresh_in(parent)?;
        Ok(Self { folder })
    }

    /// Where the image is, or will be.
    pub(crate) fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }
}

/// The images of those targets that have one.
///
/// # Errors
/// If a folder cannot be made.
pub(crate) fn kept(targets: &[Target]) -> Result<Vec<Option<Kept>>> {
    let kept = targets.iter().map(|target| match target {
        Target::Volume(path) => Kept::beside(path).map(Some),
        _ => Ok(None),
    });
    kept.collect()
}

impl Image {
    fn open_on(&self, device: Arc<dyn BlockDevice>) -> Result<FileSystem, Errno> {
        let opened = VolumeStore::open(device, &OpenOptions::default());
        let store = Arc::new(opened.map_err(|error| error.errno())?);
        let options = Options {
            memory: self.cache.map(|most| 2 * most),
            ..Options::default()
        };
        let fs = FileSystem::new(store.clone(), options)?;
        *self.held() = Some(store);
        Ok(fs)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Arc<VolumeStore>>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the volume, drops the host's caches, and opens the volume again. No handle of its
    /// file system may exist.
    ///
    /// # Errors
    /// Those of closing and of opening; without the right to empty the host's caches, `EACCES`.
    pub(super) fn reopened(&self) -> Result<FileSystem, Errno> {
        if let Some(store) = self.held().take() {
            store.close().map_err(|error| error.errno())?;
        }
        drop_host_caches()?;
        let device = FileDevice::open(&self.path, Access::ReadWrite);
        self.open_on(Arc::new(device.map_err(|error| error.errno())?))
    }

    /// In how many pieces a file's bytes lie.
    ///
    /// # Errors
    /// Those of the volume.
    pub(super) fn extents(&self, ino: Ino) -> Result<u64, Errno> {
        let held = self.held();
        let store = held.as_ref().ok_or(Errno::EIO)?;
        let extents = store.extents(ino).map_err(|error| error.errno())?;
        Ok(extents.len() as u64)
    }

    /// Ends the volume, and removes the image if it owns the folder.
    pub(super) fn remove(self) -> Result<()> {
        drop(self.held().take());
        self.folder.map_or(Ok(()), Folder::close)
    }
}

/// Lets the host forget everything that it has in memory of any file and that is written.
///
/// # Errors
/// `EACCES` without the right to.
pub(crate) fn drop_host_caches() -> Result<(), Errno> {
    std::fs::write("/proc/sys/vm/drop_caches", "3")
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}
