//! The space of files as their inodes report it: exact, and without loading their content.

use crate::stage::{assert_sound, formatted, opened};
use holdfast_core::{Bulkstat, FileSystem, Store, Visit};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::device::SlowDevice;
use holdfast_types::{Caller, Fallocate, OpenFlags, SetAttr};
use holdfast_volume::{FormatOptions, VolumeStore};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const MIB: u64 = 1 << 20;

struct Volume {
    device: Arc<dyn BlockDevice>,
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

impl Volume {
    fn new() -> Self {
        let device = formatted(64 * MIB, &FormatOptions::default());
        Self::open(device)
    }

    fn open(device: Arc<dyn BlockDevice>) -> Self {
        let (store, fs) = opened(&device);
        Self { device, store, fs }
    }

    fn close(self) -> Arc<dyn BlockDevice> {
        self.fs.close().unwrap();
        self.store.close().unwrap();
        assert_sound(&self.device);
        self.device
    }

    fn file(&self, name: &str, steps: &[Step]) {
        let (who, root) = (Caller::root(), self.fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = self
            .fs
            .open_at(&who, &root, name.as_bytes(), flags, 0o644)
            .unwrap();
        for step in steps {
            match *step {
                Step::Write(offset, len) => {
                    let bytes = vec![7; len];
                    self.fs.write(&who, &file, offset, &bytes).unwrap();
                }
                Step::Size(size) => {
                    let set = SetAttr {
                        size: Some(size),
                        ..SetAttr::default()
                    };
                    self.fs.setattr(&who, file.node(), &set, None).unwrap();
                }
                Step::Space(mode, offset, len) => {
                    self.fs.fallocate(&who, &file, mode, offset, len).unwrap();
                }
                Step::Perm(perm) => {
                    let set = SetAttr {
                        perm: Some(perm),
                        ..SetAttr::default()
                    };
                    self.fs.setattr(&who, file.node(), &set, None).unwrap();
                }
                Step::Checkpoint => {
                    self.fs.sync().unwrap();
                    self.store.checkpoint().unwrap();
                }
            }
        }
    }

    /// What stat(2) reports of all files, by name.
    fn stats(&self) -> BTreeMap<String, (u64, u64)> {
        let (who, root) = (Caller::root(), self.fs.root());
        let dir = self
            .fs
            .open_at(&who, &root, b"/", OpenFlags::DIRECTORY, 0)
            .unwrap();
        let mut found = BTreeMap::new();
        self.fs
            .read_dir_plus(&dir, 0, &mut |entry, attr| {
                let attr = attr.unwrap();
                let name = String::from_utf8(entry.name.to_vec()).unwrap();
                if !name.starts_with('.') {
                    found.insert(name, (attr.ino.0, attr.blocks));
                }
                true
            })
            .unwrap();
        found
    }

    /// What a scan reports of all inodes, by number.
    fn scanned(&self) -> BTreeMap<u64, u64> {
        let mut found = BTreeMap::new();
        self.fs
            .bulkstat_attributes(&mut Bulkstat::new(), |attr| {
                found.insert(attr.ino.0, attr.blocks);
                Ok(Visit::Continue)
            })
            .unwrap();
        found
    }

    /// What the store reports of them, run by run.
    fn counted(&self, ino: u64) -> u64 {
        let (mut at, mut pages) = (0, 0);
        while let Some(run) = self.store.next_space(holdfast_types::Ino(ino), at).unwrap() {
            at = run.start + run.len;
            pages += at.div_ceil(4096) - run.start / 4096;
        }
        pages * 8
    }
}

#[derive(Clone, Copy)]
enum Step {
    Write(u64, usize),
    Size(u64),
    Space(Fallocate, u64, u64),
    Perm(u16),
    Checkpoint,
}
use Step::{Checkpoint, Perm, Size, Space, Write};

/// Files of every kind, some of them changed after a checkpoint.
fn shapes() -> Vec<(&'static str, Vec<Step>, u64)> {
    let keep = Fallocate::KEEP_SIZE;
    let punch = Fallocate::PUNCH_HOLE | keep;
    vec![
        ("empty", vec![], 0),
        ("inline", vec![Write(0, 1000)], 8),
        ("block", vec![Write(0, 3000)], 8),
        ("whole", vec![Write(0, 100_000)], 200),
        ("sparse", vec![Write(0, 10), Write(MIB, 5000)], 24),
        ("all hole", vec![Size(MIB)], 0),
        (
            "behind",
            vec![Write(0, 5000), Space(keep, 65_536, 16_384)],
            48,
        ),
        ("only behind", vec![Space(keep, 0, 16_384)], 32),
        ("allocated", vec![Space(Fallocate::empty(), 0, 40_960)], 80),
        (
            "punched",
            vec![Write(0, 40_960), Space(punch, 4096, 8192)],
            64,
        ),
        ("cut", vec![Write(0, 40_960), Size(4097)], 16),
        (
            "changed",
            vec![Write(0, 10), Write(MIB, 10), Checkpoint, Perm(0o600)],
            16,
        ),
        (
            "filled",
            vec![Write(8192, 4096), Checkpoint, Write(0, 8192)],
            24,
        ),
        (
            "holed",
            vec![Write(0, 12_288), Checkpoint, Space(punch, 0, 8192)],
            8,
        ),
        ("longer", vec![Write(0, 100), Checkpoint, Size(20_000)], 8),
        ("emptied", vec![Write(0, 12_288), Checkpoint, Size(0)], 0),
        (
            "behind, changed",
            vec![Space(keep, 0, 8192), Checkpoint, Perm(0o600)],
            16,
        ),
    ]
}

#[test]
fn inodes_say_the_space_of_files_of_every_shape() {
    let volume = Volume::new();
    let mut expected = BTreeMap::new();
    for (name, steps, blocks) in shapes() {
        volume.file(name, &steps);
        expected.insert(name.to_owned(), blocks);
    }
    let blocks = |stats: BTreeMap<String, (u64, u64)>| -> BTreeMap<String, u64> {
        let blocks = stats.into_iter().map(|(name, (_, blocks))| (name, blocks));
        blocks.collect()
    };
    let exact = |volume: &Volume, when: &str| {
        // Before a stat loads anything.
        let scanned = volume.scanned();
        let stats = volume.stats();
        for (name, (ino, blocks)) in &stats {
            assert_eq!(scanned[ino], *blocks, "{when}: {name}");
            assert_eq!(volume.counted(*ino), *blocks, "{when}: {name}");
        }
        assert_eq!(blocks(stats), expected, "{when}");
    };
    exact(&volume, "as they were made");
    volume.fs.sync().unwrap();
    volume.fs.drop_caches().unwrap();
    exact(&volume, "committed");
    // What a crash leaves, which is replayed.
    let left = Volume::open(Arc::new(copy(&volume.device)));
    exact(&left, "replayed");
    drop(left);
    volume.store.checkpoint().unwrap();
    volume.fs.drop_caches().unwrap();
    exact(&volume, "in the trees");
    let volume = Volume::open(volume.close());
    exact(&volume, "opened again");
    volume.close();
}

fn copy(device: &Arc<dyn BlockDevice>) -> MemoryDevice {
    let copy = MemoryDevice::new(device.size());
    let mut piece = vec![0; MIB as usize];
    for at in (0..device.size()).step_by(piece.len()) {
        device.read(at, &mut piece).unwrap();
        copy.write(at, &piece).unwrap();
    }
    copy
}

/// Device reads of a cold listing with attributes, and then of asking each file.
fn reads_of_a_listing(steps: &[Step]) -> u64 {
    const FILES: usize = 800;
    let volume = Volume::new();
    for number in 0..FILES {
        volume.file(&format!("file {number:04}"), steps);
    }
    let zero = Duration::ZERO;
    let device = volume.close();
    let slow = Arc::new(SlowDevice::new(device, zero, zero, zero));
    let volume = Volume::open(slow.clone());
    let before = slow.waits();
    let stats = volume.stats();
    assert_eq!(stats.len(), FILES);
    for (name, (_, blocks)) in stats {
        let attr = volume
            .fs
            .stat_at(&Caller::root(), &volume.fs.root(), name.as_bytes(), true)
            .unwrap();
        assert_eq!(attr.blocks, blocks);
    }
    slow.waits() - before
}

#[test]
fn a_stat_reads_no_content() {
    let empty = reads_of_a_listing(&[]);
    assert!(empty > 0);
    for (steps, what) in [
        (vec![Write(0, 1000)], "1,000 bytes"),
        (vec![Write(0, 3000)], "a block"),
        (vec![Write(0, 10), Write(40_960, 10)], "a hole"),
        (vec![Size(40_960)], "nothing but a hole"),
    ] {
        assert_eq!(reads_of_a_listing(&steps), empty, "{what}");
    }
}
