//! A volume over a used device: nothing of its old contents shows.

use crate::stage::opened_with;
use holdfast_core::FileSystem;
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{Caller, Errno, Fallocate, OpenFlags};
use holdfast_volume::{CheckOptions, FormatOptions, OpenOptions, VolumeStore, check, format};
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 16 * MIB;
const LEN: u64 = 2 * MIB;

/// A volume in use.
struct Volume {
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

impl Volume {
    fn open(device: &Arc<dyn BlockDevice>) -> Self {
        let (store, fs) = opened_with(device, &OpenOptions::default());
        Self { store, fs }
    }

    fn close(self) {
        self.fs.close().unwrap();
        self.store.close().unwrap();
    }
}

/// Ranges of blocks, some of reused ones, and what the file shows then.
fn write(volume: &Volume) -> Vec<u8> {
    let who = Caller::root();
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    let root = volume.fs.root();
    let file = volume
        .fs
        .open_at(&who, &root, b"file", flags, 0o600)
        .unwrap();
    volume
        .fs
        .fallocate(&who, &file, Fallocate::empty(), LEN / 2, LEN / 2)
        .unwrap();
    let mut expected = vec![0; LEN as usize];
    for (number, at) in (0..LEN - 1024).step_by(5 * 1024 + 512).enumerate() {
        let bytes = vec![1 + number as u8 % 200; 1 + (number * 37) % 1024];
        volume.fs.write(&who, &file, at, &bytes).unwrap();
        expected[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
        if number % 50 == 0 {
            volume.fs.fsync(&file, false).unwrap();
        }
    }
    expected
}

fn read(volume: &Volume) -> Vec<u8> {
    let who = Caller::root();
    let root = volume.fs.root();
    let file = volume
        .fs
        .open_at(&who, &root, b"file", OpenFlags::empty(), 0)
        .unwrap();
    let mut bytes = vec![0xEE; LEN as usize];
    let read = volume.fs.read(&file, 0, &mut bytes).unwrap();
    assert_eq!(read as u64, LEN);
    bytes
}

#[test]
fn nothing_shows_of_a_device_full_of_other_bytes_nor_of_the_volume_before() {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(SIZE));
    device.write(0, &vec![0xAA; SIZE as usize]).unwrap();
    for round in 0..3 {
        format(&device, &FormatOptions::default()).unwrap();
        let volume = Volume::open(&device);
        let root = volume.fs.root();
        let found = volume.fs.lookup(&Caller::root(), &root, b"file");
        assert_eq!(found.err(), Some(Errno::ENOENT), "round {round}");
        let expected = write(&volume);
        assert!(read(&volume) == expected, "round {round}");
        volume.close();
        let volume = Volume::open(&device);
        assert!(read(&volume) == expected, "round {round}, opened again");
        volume.close();
        let report = check(&device, &CheckOptions::default(), &|_, _, _| {});
        assert!(report.is_clean(), "round {round}: {:#?}", report.findings);
    }
}
