//! A volume with a directory full of small files, opened with nothing in memory.

use super::device::SlowReads;
use crate::chance::mixed;
use crate::sys;
use crate::targets::Kept;
use anyhow::{Context, Result, bail};
use holdfast_core::{FileSystem, Node, OpenFile, Options};
use holdfast_device::{BlockDevice, FileDevice, FileOptions};
use holdfast_types::{Caller, OpenFlags};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a file: small files are what directories of so many have.
const FILE: [u8; 1000] = [b'x'; 1000];
/// The directory that they are in.
const DIR: &[u8] = b"files";

/// An image with its files, which goes when this is dropped.
pub(super) struct Filled {
    kept: Kept,
    /// In the order in which the files were made.
    names: Vec<Vec<u8>>,
}

/// How slow the device is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pub(super) delay: Duration,
    /// One read at a time.
    pub(super) serial: bool,
}

impl Filled {
    /// Makes a volume with so many files, beside this path.
    ///
    /// # Errors
    /// If it cannot be made; an interruption.
    pub(super) fn make(path: &Path, files: usize) -> Result<Self> {
        let kept = Kept::beside(path)?;
        let size = (64 << 20) + files as u64 * (8 << 10);
        let device = FileDevice::create(&kept.image(), size, FileOptions::default());
        let device: Arc<dyn BlockDevice> = Arc::new(device.context("cannot make the image")?);
        holdfast_volume::format(&device, &FormatOptions::default())
            .context("cannot make the volume")?;
        let names: Vec<Vec<u8>> = (0..files as u64).map(name).collect();
        let open = Opened::on(device)?;
        let who = Caller::root();
        let dir = open.fs.mkdir(&who, &open.fs.root(), DIR, 0o755)?;
        for name in &names {
            if sys::end_asked() {
                bail!("interrupted");
            }
            let file = (open.fs).create(&who, &dir, name, 0o644, OpenFlags::WRITE_ONLY)?;
            open.fs.write(&who, &file, 0, &FILE)?;
        }
        drop(dir);
        open.close()?;
        Ok(Self { kept, names })
    }

    pub(super) fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Opens it with nothing in memory, on a device that is slow from now on.
    ///
    /// # Errors
    /// Those of the device and of the volume.
    pub(super) fn open(&self, slow: Slow) -> Result<Cold> {
        let device = FileDevice::open(&self.kept.image(), FileOptions::default())?;
        let device = Arc::new(SlowReads::new(Arc::new(device), slow.delay, slow.serial));
        let open = Opened::on(device.clone())?;
        device.slow_down();
        Ok(Cold { device, open })
    }
}

/// A name of 24 bytes; neither their order nor their hashes' is that in which the files are made.
fn name(number: u64) -> Vec<u8> {
    format!("{:016x}{number:08}", mixed(number)).into_bytes()
}

struct Opened {
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

impl Opened {
    fn on(device: Arc<dyn BlockDevice>) -> Result<Self> {
        let store = Arc::new(VolumeStore::open(device, &OpenOptions::default())?);
        let fs = FileSystem::new(store.clone(), Options::default())?;
        Ok(Self { store, fs })
    }

    fn close(self) -> Result<()> {
        self.fs.close()?;
        self.store.close().context("cannot close the volume")
    }
}

/// A volume of which nothing was used yet.
pub(super) struct Cold {
    device: Arc<SlowReads>,
    open: Opened,
}

impl Cold {
    pub(super) fn fs(&self) -> &FileSystem {
        &self.open.fs
    }

    /// How often a read of the device waited.
    pub(super) fn waits(&self) -> u64 {
        self.device.waits()
    }

    /// Opens the directory of the files.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn dir(&self, who: &Caller) -> Result<OpenFile> {
        let root: Node = self.fs().root();
        Ok(self
            .fs()
            .open_at(who, &root, DIR, OpenFlags::DIRECTORY, 0)?)
    }

    /// Ends it.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn close(self) -> Result<()> {
        self.open.close()
    }
}
