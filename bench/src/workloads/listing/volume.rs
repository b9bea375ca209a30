//! A volume with a directory full of small files, opened with nothing in memory.

use super::cold::{Cold, Directory, FILES, SMALL, TREE};
use super::device::SlowReads;
use super::in_process::InProcess;
use crate::chance::name;
use crate::sys;
use crate::targets::Kept;
use anyhow::{Context, Result, bail};
use holdfast_core::{FileSystem, Node, Options};
use holdfast_device::{Access, BlockDevice, FileDevice};
use holdfast_types::{Caller, OpenFlags};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a file: small files are what directories of so many have.
const FILE: [u8; 1000] = [b'x'; 1000];

/// An image with its files, which goes when this is dropped.
pub(super) struct Filled {
    kept: Kept,
}

/// How slow the device is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pub(super) delay: Duration,
    /// One read at a time.
    pub(super) serial: bool,
}

impl Filled {
    /// Makes a volume with these files, in this order, all in one directory and in small ones,
    /// beside this path.
    ///
    /// # Errors
    /// If it cannot be made; an interruption.
    pub(super) fn make(path: &Path, names: &[Vec<u8>]) -> Result<Self> {
        let kept = Kept::beside(path)?;
        let size = (64 << 20) + names.len() as u64 * (16 << 10);
        let device = FileDevice::create(&kept.image(), size);
        let device: Arc<dyn BlockDevice> = Arc::new(device.context("cannot make the image")?);
        holdfast_volume::format(&device, &FormatOptions::default())
            .context("cannot make the volume")?;
        let open = Opened::on(device)?;
        let who = Caller::root();
        let make_dir = |parent: &Node, name: &[u8]| open.fs.mkdir(&who, parent, name, 0o755);
        let make = |dir: &Node, name: &[u8]| -> Result<()> {
            if sys::end_asked() {
                bail!("interrupted");
            }
            let file = (open.fs).create(&who, dir, name, 0o644, OpenFlags::WRITE_ONLY)?;
            open.fs.write(&who, &file, 0, &FILE)?;
            Ok(())
        };
        let root = open.fs.root();
        let files = make_dir(&root, FILES.as_bytes())?;
        names.iter().try_for_each(|name| make(&files, name))?;
        let tree = make_dir(&root, TREE.as_bytes())?;
        for (number, names) in (0..).zip(names.chunks(SMALL as usize)) {
            let small = make_dir(&tree, &name(number))?;
            names.iter().try_for_each(|name| make(&small, name))?;
        }
        drop((root, files, tree));
        open.close()?;
        Ok(Self { kept })
    }

    /// Opens it with nothing in memory, on a device that is slow from now on.
    ///
    /// # Errors
    /// Those of the device and of the volume.
    pub(super) fn open(&self, slow: Slow) -> Result<ColdVolume> {
        let device = FileDevice::open(&self.kept.image(), Access::ReadWrite)?;
        let device = Arc::new(SlowReads::new(Arc::new(device), slow.delay, slow.serial));
        let open = Opened::on(device.clone())?;
        device.slow_down();
        Ok(ColdVolume { device, open })
    }
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
pub(super) struct ColdVolume {
    device: Arc<SlowReads>,
    open: Opened,
}

impl Cold for ColdVolume {
    fn directory(&self, path: &Path) -> Result<Box<dyn Directory + '_>> {
        Ok(Box::new(InProcess::open(&self.open.fs, path)?))
    }

    fn waits(&mut self) -> Result<u64> {
        Ok(self.device.waits())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.open.close()
    }
}
