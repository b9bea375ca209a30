//! Opening a volume that was closed cleanly. Few reads precede the first reply, and what is read
//! later is as good as what was read before.

use crate::stage::{assert_sound, formatted, opened};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, ReadRequest, Result};
use holdfast_types::{Caller, Errno, OpenFlags};
use holdfast_volume::superblock::Superblock;
use holdfast_volume::{CheckOptions, Error, FormatOptions, OpenOptions, VolumeStore, repair};
use parking_lot::{Condvar, Mutex};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const BLOCK: usize = 4096;
/// Reads that the first requests may wait for, and their bytes.
const READS: u64 = 10;
const BYTES: u64 = 2 * MIB;

/// Counts the reads of one thread. Other threads wait for the test.
#[derive(Debug)]
struct FirstReads {
    inner: Arc<dyn BlockDevice>,
    who: ThreadId,
    reads: AtomicU64,
    bytes: AtomicU64,
    others_may: Mutex<bool>,
    changed: Condvar,
}

impl FirstReads {
    fn new(inner: &Arc<dyn BlockDevice>) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            who: thread::current().id(),
            reads: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            others_may: Mutex::new(false),
            changed: Condvar::new(),
        })
    }

    fn count(&self, bytes: usize) {
        if thread::current().id() == self.who {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            return;
        }
        let mut may = self.others_may.lock();
        while !*may {
            self.changed.wait(&mut may);
        }
    }

    fn let_others(&self) {
        *self.others_may.lock() = true;
        self.changed.notify_all();
    }
}

impl BlockDevice for FirstReads {
    holdfast_device::pass_on!(inner: describe, size, alignment, flush, discard, resize, room);

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write(offset, bytes)
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.count(buf.len());
        self.inner.read(offset, buf)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        for request in &*requests {
            self.count(request.buf.len());
        }
        self.inner.read_batch(requests)
    }
}

fn close(store: &VolumeStore, fs: &FileSystem) {
    fs.close().unwrap();
    store.close().unwrap();
}

fn write(fs: &FileSystem, name: &str, len: usize) -> holdfast_types::Result<()> {
    let (who, flags) = (Caller::root(), OpenFlags::CREATE | OpenFlags::READ_WRITE);
    let file = fs.create(&who, &fs.root(), name.as_bytes(), 0o644, flags)?;
    fs.write(&who, &file, 0, &vec![7; len]).map(drop)
}

/// A new volume with so many files on it.
fn made(size: u64, files: usize) -> Arc<dyn BlockDevice> {
    let device = formatted(size, &FormatOptions::default());
    if files > 0 {
        let (store, fs) = opened(&device);
        for number in 0..files {
            // Names of maximal length, so that the trees are high.
            let len = if number % 1000 == 0 { 9000 } else { 0 };
            write(&fs, &format!("{number:0>250}"), len).unwrap();
        }
        close(&store, &fs);
    }
    device
}

/// The reads of the first requests. Their caller waits for nothing else.
fn first_requests(device: &Arc<dyn BlockDevice>, files: usize) -> (u64, u64) {
    let counting = FirstReads::new(device);
    let (store, fs) = opened(&(Arc::clone(&counting) as _));
    let (who, root) = (Caller::root(), fs.root());
    let space = fs.statfs().unwrap();
    let inodes = fs.getattr(&root).ino;
    let counts = || {
        let counts = [&counting.reads, &counting.bytes];
        counts.map(|count| count.load(Ordering::Relaxed))
    };
    let [reads, bytes] = counts();
    assert!(inodes.0 > 0);
    // These also read the paths to leaves of trees.
    let missing = fs.lookup(&who, &root, b"missing").map(drop);
    assert_eq!(missing, Err(Errno::ENOENT));
    write(&fs, "new", 100).unwrap();
    assert!(counts()[0] <= reads + READS, "{} and {reads}", counts()[0]);
    counting.let_others();
    write(&fs, "larger", 100_000).unwrap();
    fs.sync().unwrap();
    let later = fs.statfs().unwrap();
    assert_eq!(later.blocks, space.blocks);
    let used = space.blocks_free - later.blocks_free;
    assert!((25..400).contains(&used), "{used} blocks, {files} files");
    close(&store, &fs);
    (reads, bytes)
}

#[test]
fn the_first_requests_to_a_clean_volume_wait_for_few_reads() {
    for (size, files) in [
        (64 * MIB, 0),
        (64 * MIB, 3000),
        (GIB, 0),
        (GIB, 50_000),
        (64 * GIB, 0),
        (64 * GIB, 3000),
        (4096 * GIB, 0),
        (4096 * GIB, 3000),
    ] {
        let device = made(size, files);
        let (reads, bytes) = first_requests(&device, files);
        println!("{size} bytes, {files} files: {reads} reads, {bytes} bytes");
        assert!(reads <= READS, "{size} bytes, {files} files: {reads} reads");
        assert!(bytes <= BYTES, "{size} bytes, {files} files: {bytes} bytes");
        if size <= 64 * GIB {
            assert_sound(&device);
        }
    }
}

#[test]
fn who_only_looks_at_a_clean_volume_waits_for_few_reads() {
    for (size, files) in [(GIB, 3000), (64 * GIB, 3000)] {
        let device = made(size, files);
        let counting = FirstReads::new(&device);
        let below = Arc::clone(&counting) as _;
        let store = VolumeStore::open_read_only(below, &OpenOptions::default()).unwrap();
        let store = Arc::new(store);
        let fs = FileSystem::new(store, Options::default()).unwrap();
        assert!(fs.statfs().unwrap().blocks_free > 0);
        let name = format!("{:0>250}", 2000);
        let found = fs.lookup(&Caller::root(), &fs.root(), name.as_bytes());
        assert_eq!(fs.getattr(&found.unwrap()).size, 9000);
        let reads = counting.reads.load(Ordering::Relaxed);
        assert!(reads <= READS, "{size} bytes: {reads} reads");
        counting.let_others();
    }
}

/// Damages all written bitmaps.
fn spoil(device: &Arc<dyn BlockDevice>) {
    let mut bytes = [0; BLOCK];
    device.read(0, &mut bytes).unwrap();
    let layout = Superblock::decode(&bytes, 0).unwrap().layout();
    for group in 0..layout.groups() {
        for slot in [0, 1] {
            let at = layout.slot(group, slot) * BLOCK as u64;
            device.read(at, &mut bytes).unwrap();
            if bytes.starts_with(b"HFgb") {
                device.write(at, &[9; BLOCK]).unwrap();
            }
        }
    }
}

#[test]
fn bitmaps_that_are_found_damaged_late_stop_the_volume() {
    let device = made(1024 * GIB, 10);
    spoil(&device);
    let counting = FirstReads::new(&device);
    let (store, fs) = opened(&(Arc::clone(&counting) as _));
    fs.statfs().unwrap();
    counting.let_others();
    // Nothing is allocated by unverified bitmaps. The volume is read-only by then if the thread
    // that reads the bitmaps has come to the damaged ones.
    let written = write(&fs, "new", 100_000).and_then(|()| fs.sync());
    assert!(
        matches!(written, Err(Errno::EUCLEAN | Errno::EROFS)),
        "{written:?}"
    );
    assert!(matches!(store.checkpoint(), Err(Error::Stopped(_))));
    fs.lookup(
        &Caller::root(),
        &fs.root(),
        format!("{:0>250}", 1).as_bytes(),
    )
    .unwrap();
}

#[test]
fn bitmaps_that_are_few_are_known_to_be_right_when_a_volume_is_open() {
    let device = made(GIB, 10);
    spoil(&device);
    let opened = VolumeStore::open(device, &OpenOptions::default());
    assert_eq!(opened.unwrap_err().errno(), Errno::EUCLEAN);
}

#[test]
fn what_was_committed_behind_the_last_checkpoint_is_found_though_the_volume_says_that_it_is_closed()
{
    let device = made(64 * MIB, 0);
    let (store, fs) = opened(&device);
    write(&fs, "file", 5000).unwrap();
    fs.sync().unwrap();
    drop((store, fs));
    // As if a thread had committed while the volume was closed.
    change_superblocks(&device, |superblock| superblock.clean = true);
    let (store, fs) = opened(&device);
    let found = fs.lookup(&Caller::root(), &fs.root(), b"file").unwrap();
    assert_eq!(fs.getattr(&found).size, 5000);
    close(&store, &fs);
}

#[test]
fn unknown_read_only_compatible_features_allow_reading_alone() {
    let device = made(64 * MIB, 0);
    let (store, fs) = opened(&device);
    write(&fs, "file", 5000).unwrap();
    close(&store, &fs);
    drop((store, fs));
    change_superblocks(&device, |superblock| {
        superblock.features.read_only_compatible = 1 << 7;
    });
    let mut before = vec![0; (64 * MIB) as usize];
    device.read(0, &mut before).unwrap();

    let options = OpenOptions::default();
    let refused = VolumeStore::open(Arc::clone(&device), &options).unwrap_err();
    assert!(
        matches!(refused, Error::ReadOnlyFeatures { features: 128, .. }),
        "{refused}"
    );
    assert_eq!(refused.errno(), Errno::EROFS);
    let store = VolumeStore::open_read_only(Arc::clone(&device), &options).unwrap();
    let fs = FileSystem::new(Arc::new(store), Options::default()).unwrap();
    let found = fs.lookup(&Caller::root(), &fs.root(), b"file").unwrap();
    assert_eq!(fs.getattr(&found).size, 5000);
    let repaired = repair(&device, &CheckOptions::default(), &|_, _, _| {});
    assert!(matches!(repaired, Err(Error::ReadOnlyFeatures { .. })));
    let mut after = vec![0; before.len()];
    device.read(0, &mut after).unwrap();
    assert!(before == after, "the device was written");
}

fn change_superblocks(device: &Arc<dyn BlockDevice>, change: impl Fn(&mut Superblock)) {
    for slot in [0, 1] {
        let mut bytes = [0; BLOCK];
        device.read(slot * BLOCK as u64, &mut bytes).unwrap();
        let mut superblock = Superblock::decode(&bytes, slot).unwrap();
        change(&mut superblock);
        device
            .write(slot * BLOCK as u64, &superblock.encode(slot)[..])
            .unwrap();
    }
}
