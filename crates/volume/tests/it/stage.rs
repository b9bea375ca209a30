//! A volume in memory, made, opened and checked.

use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_volume::{CheckOptions, FormatOptions, OpenOptions, VolumeStore, check, format};
use std::sync::Arc;

/// A new volume on a device of this size.
pub(crate) fn formatted(size: u64, options: &FormatOptions) -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
    format(&device, options).unwrap();
    device
}

/// An open volume, which commits on demand alone, and the file system on it.
pub(crate) fn opened(device: &Arc<dyn BlockDevice>) -> (Arc<VolumeStore>, FileSystem) {
    let options = OpenOptions {
        commit_every: None,
        ..OpenOptions::default()
    };
    opened_with(device, &options)
}

pub(crate) fn opened_with(
    device: &Arc<dyn BlockDevice>,
    options: &OpenOptions,
) -> (Arc<VolumeStore>, FileSystem) {
    let store = Arc::new(VolumeStore::open(Arc::clone(device), options).unwrap());
    let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
    (store, fs)
}

#[track_caller]
pub(crate) fn assert_sound(device: &Arc<dyn BlockDevice>) {
    let report = check(device, &CheckOptions::default(), &|_, _, _| {});
    assert!(report.is_clean(), "{:?}", report.findings);
}
