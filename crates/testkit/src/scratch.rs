//! A volume for one test, on a device in memory.

use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_volume::{CheckOptions, FormatOptions, OpenOptions, VolumeStore, check, format};
use std::sync::Arc;

/// A new volume, and a file system on it.
#[derive(Debug)]
pub struct ScratchVolume {
    device: Arc<dyn BlockDevice>,
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

impl ScratchVolume {
    /// A volume of so many bytes.
    ///
    /// # Panics
    /// If so many make none.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(bytes));
        format(&device, &FormatOptions::default()).expect("a device without faults");
        let store = VolumeStore::open(Arc::clone(&device), &OpenOptions::default());
        let store = Arc::new(store.expect("a new volume"));
        let fs = FileSystem::new(store.clone(), Options::default()).expect("a new volume");
        Self { device, store, fs }
    }

    /// Its file system.
    #[must_use]
    pub fn file_system(&self) -> &FileSystem {
        &self.fs
    }

    /// Closes the volume and checks it.
    ///
    /// # Panics
    /// If it cannot be closed, or something is wrong with it.
    pub fn end(self) {
        let Self { device, store, fs } = self;
        fs.close().expect("a device without faults");
        drop(fs);
        store.close().expect("a device without faults");
        drop(store);
        let report = check(&device, &CheckOptions::default(), &|_, _, _| {});
        assert!(report.is_clean(), "{report:?}");
    }
}
