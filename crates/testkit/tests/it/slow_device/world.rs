//! A volume on a device that can be held, and files on it.

use holdfast_core::{FileSystem, OpenFile, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::device::HeldDevice;
use holdfast_types::{Caller, OpenFlags, RenameFlags, SetAttr};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

pub(super) const PAGE: u64 = 4096;
/// Not a multiple of a block: the rest of the last one has to be zeroed before the file grows over
/// it.
pub(super) const PART: u64 = 3 * PAGE + 1000;
pub(super) const LARGE: u64 = 2 << 20;
/// Names of the directory that is read: more than one node holds.
pub(super) const NAMES: u64 = 1500;
const SIZE: u64 = 32 << 20;

/// A volume on a device that can be held, and a file system over it.
pub(super) struct World {
    pub(super) device: Arc<HeldDevice>,
    pub(super) store: Arc<VolumeStore>,
    pub(super) fs: FileSystem,
}

pub(super) fn byte(at: u64) -> u8 {
    (at % 251) as u8 + 1
}

pub(super) fn bytes(len: u64) -> Vec<u8> {
    (0..len).map(byte).collect()
}

/// A volume with files in two directories, and some more.
fn image() -> Vec<u8> {
    let memory = Arc::new(MemoryDevice::new(SIZE));
    let device: Arc<dyn BlockDevice> = Arc::clone(&memory) as _;
    let options = FormatOptions {
        seed: Some(1),
        ..FormatOptions::default()
    };
    format(&device, &options).unwrap();
    let world = World::over(&memory);
    let (who, root) = (Caller::root(), world.fs.root());
    let dirs = [
        "/aside",
        "/deep",
        "/deep/down",
        "/deep/down/below",
        "/mine",
        "/others",
    ];
    for dir in dirs {
        let made = world.fs.mkdir_at(&who, &root, dir.as_bytes(), 0o755);
        drop(made.unwrap());
    }
    drop(root);
    world.write(b"/deep/down/below/target", 0, &bytes(10));
    for dir in ["/mine", "/others"] {
        let write = |name: &str, len: u64| {
            world.write(format!("{dir}/{name}").as_bytes(), 0, &bytes(len));
        };
        for number in 0..NAMES {
            // No two alike, or one node would hold the attributes of all.
            write(
                &format!("a long name, number {number}"),
                10 + number * 7 % 300,
            );
        }
        for name in ["part", "part too", "more"] {
            write(name, PART);
        }
        for name in ["large", "gone", "target"] {
            write(name, LARGE);
        }
    }
    world.close();
    let mut image = vec![0; SIZE as usize];
    memory.read(0, &mut image).unwrap();
    image
}

impl World {
    fn over(memory: &Arc<MemoryDevice>) -> Self {
        let device = Arc::new(HeldDevice::new(Arc::clone(memory) as _));
        let options = OpenOptions {
            // No commit but those that the test makes.
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = Arc::new(VolumeStore::open(Arc::clone(&device) as _, &options).unwrap());
        let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
        Self { device, store, fs }
    }

    /// With files that nothing is known of in memory, but what others would wait for themselves.
    pub(super) fn cold() -> Self {
        static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
        let image = IMAGE.get_or_init(image);
        let memory = Arc::new(MemoryDevice::new(SIZE));
        memory.write(0, image).unwrap();
        let world = Self::over(&memory);
        let _ = (world.open(b"/others/large"), world.open(b"/aside/known"));
        world
    }

    pub(super) fn open(&self, path: &[u8]) -> OpenFile {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        self.fs
            .open_at(&Caller::root(), &self.fs.root(), path, flags, 0o644)
            .unwrap()
    }

    pub(super) fn write(&self, path: &[u8], at: u64, data: &[u8]) {
        let file = self.open(path);
        let written = self.fs.write(&Caller::root(), &file, at, data);
        assert_eq!(written, Ok(data.len()));
    }

    pub(super) fn assert_reads(&self, path: &[u8], range: Range<u64>) {
        let mut found = vec![0; (range.end - range.start) as usize];
        let read = self.fs.read(&self.open(path), range.start, &mut found);
        assert_eq!(read, Ok(found.len()));
        let expected: Vec<u8> = range.map(byte).collect();
        assert!(found == expected, "other bytes");
    }

    pub(super) fn resize(&self, path: &[u8], size: u64) {
        let set = SetAttr {
            size: Some(size),
            ..SetAttr::default()
        };
        let file = self.open(path);
        self.fs
            .setattr(&Caller::root(), file.node(), &set, Some(&file))
            .unwrap();
    }

    pub(super) fn rename(&self, from: &[u8], to: &[u8]) {
        let (who, root) = (Caller::root(), self.fs.root());
        self.fs
            .rename_at(&who, &root, from, &root, to, RenameFlags::empty())
            .unwrap();
    }

    pub(super) fn close(self) {
        self.fs.close().unwrap();
        drop(self.fs);
        self.store.close().unwrap();
    }
}
