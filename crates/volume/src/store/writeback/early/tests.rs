use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_core::{FileSystem, OpenFile, Options};
use holdfast_device::{BlockDevice, Image, MemoryDevice};
use holdfast_testkit::device::{
    CrashState, CrashStates, DeviceCall, DeviceFault, FaultyDevice, RecordingDevice,
};
use holdfast_types::{Caller, Errno, Fallocate, OpenFlags, SetAttr};

use super::EARLY_MIN;
use crate::store::{FormatOptions, OpenOptions, VolumeStore, format};

const SECTOR: u64 = 1024;
/// Pages of a file that is large enough to be looked at.
const PAGES: u64 = 1536;
/// What is where nobody wrote.
const GARBAGE: u8 = 0xee;

/// A device full of garbage, but for an empty volume.
fn formatted(size: u64) -> Image {
    formatted_with(size, &FormatOptions::default())
}

fn formatted_with(size: u64, options: &FormatOptions) -> Image {
    let mut image = Image::new(size);
    for at in (0..size).step_by(1 << 20) {
        image.write(at, &[GARBAGE; 1 << 20]);
    }
    let device = Arc::new(MemoryDevice::from_image("garbage", image));
    let volume: Arc<dyn BlockDevice> = Arc::clone(&device) as _;
    format(&volume, options).unwrap();
    device.image()
}

fn opened(device: Arc<dyn BlockDevice>) -> (FileSystem, Arc<VolumeStore>) {
    opened_to_commit(device, None)
}

fn opened_to_commit(
    device: Arc<dyn BlockDevice>,
    commit_every: Option<Duration>,
) -> (FileSystem, Arc<VolumeStore>) {
    let options = OpenOptions {
        commit_every,
        ..OpenOptions::default()
    };
    let store = Arc::new(VolumeStore::open(device, &options).unwrap());
    let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
    (fs, store)
}

/// The file of a volume that was not closed.
fn content(device: Arc<dyn BlockDevice>) -> Vec<u8> {
    let (fs, store) = opened(device);
    let (who, root) = (Caller::root(), fs.root());
    let file = fs.open_at(&who, &root, b"file", OpenFlags::empty(), 0);
    drop(root);
    let mut bytes = Vec::new();
    if let Ok(file) = file {
        bytes.resize(fs.getattr(file.node()).size as usize, GARBAGE);
        assert_eq!(fs.read(&file, 0, &mut bytes), Ok(bytes.len()));
    }
    fs.close().unwrap();
    store.close().unwrap();
    bytes
}

/// A file, and what is to be in it.
struct Filled {
    store: Arc<VolumeStore>,
    fs: FileSystem,
    file: OpenFile,
    pages: u64,
    bytes: Vec<u8>,
}

impl Filled {
    fn new(device: Arc<dyn BlockDevice>, pages: u64) -> Self {
        Self::over(opened(device), pages)
    }

    fn over((fs, store): (FileSystem, Arc<VolumeStore>), pages: u64) -> Self {
        let (who, root) = (Caller::root(), fs.root());
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.create(&who, &root, b"file", 0o644, flags).unwrap();
        Self {
            store,
            fs,
            file,
            pages,
            bytes: Vec::new(),
        }
    }

    fn write(&mut self, sector: u64, byte: u8) {
        let (at, who) = (sector * SECTOR, Caller::root());
        let data = [byte; SECTOR as usize];
        let done = self.fs.write(&who, &self.file, at, &data);
        assert_eq!(done, Ok(data.len()));
        let end = at as usize + data.len();
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[at as usize..end].copy_from_slice(&data);
    }

    /// Writes these sectors of all pages, in an order in which no two neighbours follow each other; of each its last
    /// one first, so that from three quarters on pages become full.
    fn fill(&mut self, part: Range<u64>, byte: u8) {
        for at in part {
            let (turn, page) = (at / self.pages, at * 811 % self.pages);
            self.write(page * 4 + (3 - turn), byte + (page % 31) as u8);
        }
    }

    fn punch(&mut self, from: u64, to: u64) {
        let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
        let (at, len) = (from * SECTOR, (to - from) * SECTOR);
        let who = Caller::root();
        self.fs.fallocate(&who, &self.file, mode, at, len).unwrap();
        self.bytes[at as usize..(at + len) as usize].fill(0);
    }

    fn truncate(&mut self, sectors: u64) {
        let set = SetAttr {
            size: Some(sectors * SECTOR),
            ..SetAttr::default()
        };
        let (who, through) = (Caller::root(), Some(&self.file));
        self.fs
            .setattr(&who, self.file.node(), &set, through)
            .unwrap();
        self.bytes.resize((sectors * SECTOR) as usize, 0);
    }

    /// Pages that may go early.
    fn left(&self) -> usize {
        let ino = self.file.node().ino();
        let store = &self.store.inner;
        store
            .with_content(ino, |content| content.dirty().early)
            .unwrap()
    }

    /// Has so many of them go.
    fn write_early(&self, pages: usize) {
        assert_eq!(self.left(), pages);
        self.store.inner.write_early().unwrap();
        assert_eq!(self.left(), 0);
    }

    fn commit(&self) {
        self.store.inner.make_durable(None).unwrap();
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![GARBAGE; self.bytes.len()];
        assert_eq!(self.fs.read(&self.file, 0, &mut bytes), Ok(bytes.len()));
        bytes
    }
}

/// Is every sector as before, or as after, or as if never written?
fn is_between(found: &[u8], before: &[u8], after: &[u8]) -> bool {
    let len = found.len().max(before.len()).max(after.len());
    let sector = |bytes: &[u8], at: usize| {
        let there = bytes.get(at..).unwrap_or(&[]);
        let mut sector = there[..there.len().min(SECTOR as usize)].to_vec();
        sector.resize(SECTOR as usize, 0);
        sector
    };
    (0..len).step_by(SECTOR as usize).all(|at| {
        let found = sector(found, at);
        found.iter().all(|byte| *byte == 0)
            || found == sector(before, at)
            || found == sector(after, at)
    })
}

#[test]
fn nobody_sees_what_went_early_before_the_commit_nor_misses_it_after() {
    let device = Arc::new(RecordingDevice::from_image(formatted(64 << 20)));
    let mut filled = Filled::new(Arc::clone(&device) as _, PAGES);
    let full = 3 * PAGES..3 * PAGES + 500;
    filled.fill(0..full.end, 1);
    let before = device.history().written();
    filled.write_early(500);
    let went = device.history().written() - before;
    assert!(went >= 500 * 4 * SECTOR, "{went} bytes were written");
    // Some of those that went are written on, given up, or cut off and written anew.
    (0..50).for_each(|page| filled.write(page * 80 + 1, 77));
    (0..20).for_each(|page| filled.punch(page * 160 + 8, page * 160 + 20));
    filled.truncate(4 * PAGES - 900);
    filled.fill(full.end - 100..4 * PAGES, 2);
    filled.write(4 * PAGES - 1, 3);
    assert!(filled.read() == filled.bytes);
    filled.store.inner.write_early().unwrap();
    filled.commit();
    device.mark(1);
    let first = filled.bytes.clone();

    // All of it goes early, so that the commit itself has nothing to write.
    filled.punch(0, 4 * PAGES);
    filled.commit();
    device.mark(2);
    let second = filled.bytes.clone();
    filled.fill(0..full.end, 4);
    filled.write_early(500);
    filled.fill(full.end..4 * PAGES, 4);
    filled.write_early(PAGES as usize - 500);
    filled.commit();
    device.mark(3);
    assert!(filled.read() == filled.bytes);
    let versions = [Vec::new(), first, second, filled.bytes.clone()];

    let states = CrashStates::new(device.history(), 48);
    let check = |state: CrashState| {
        let reached = state.reached().next_back().unwrap_or(0) as usize;
        let after = versions.get(reached + 1).unwrap_or(&versions[reached]);
        let name = state.to_string();
        let found = content(Arc::new(MemoryDevice::from_image("crashed", state.image)));
        if after == &versions[reached] {
            assert!(found == versions[reached], "{name}");
        } else {
            assert!(is_between(&found, &versions[reached], after), "{name}");
        }
    };
    let systematic = states.systematic();
    let some = (0..systematic).step_by((systematic / 100).max(1) as usize);
    some.chain(systematic..systematic + 400)
        .for_each(|number| check(states.state(number)));
}

#[test]
fn what_the_device_refused_comes_with_the_commit() {
    let inner = Arc::new(MemoryDevice::from_image("memory", formatted(64 << 20)));
    let device = Arc::new(FaultyDevice::new(Arc::clone(&inner) as _));
    let mut filled = Filled::new(Arc::clone(&device) as _, PAGES);
    filled.fill(0..3 * PAGES + 500, 1);
    device.plan(DeviceFault::once(Some(DeviceCall::Write), 0, Errno::EIO));
    filled.store.inner.write_early().unwrap_err();
    assert_eq!(filled.left(), 0, "once is enough");
    filled.fill(3 * PAGES + 500..4 * PAGES, 1);
    assert_eq!(filled.left(), 0);
    filled.commit();
    let crashed = MemoryDevice::from_image("crashed", inner.image());
    assert!(content(Arc::new(crashed)) == filled.bytes);
    // From then on they go again.
    filled.punch(0, 4 * PAGES);
    filled.fill(0..3 * PAGES + 500, 2);
    filled.write_early(500);
    filled.commit();
    let crashed = MemoryDevice::from_image("crashed", inner.image());
    assert!(content(Arc::new(crashed)) == filled.bytes);
}

#[test]
fn a_commit_comes_in_time_however_often_pages_may_go_early() {
    let device = Arc::new(MemoryDevice::from_image("memory", formatted(64 << 20)));
    let opened = opened_to_commit(device, Some(Duration::from_millis(50)));
    let mut filled = Filled::over(opened, PAGES);
    filled.fill(0..PAGES, 1);
    let waits = || {
        let store = &filled.store.inner;
        store.with_content(filled.file.node().ino(), |content| content.dirty().pages)
    };
    let begun = Instant::now();
    while waits().is_some_and(|pages| pages > 0) {
        assert!(begun.elapsed() < Duration::from_mins(1), "nobody came");
        filled.store.worker.ask_to_write_early();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn places_that_the_journal_has_no_room_for_wait_for_the_commit() {
    let small = FormatOptions {
        journal: Some(1 << 20),
        ..FormatOptions::default()
    };
    let inner = formatted_with(64 << 20, &small);
    let inner = Arc::new(MemoryDevice::from_image("memory", inner));
    let device = Arc::new(RecordingDevice::new(Arc::clone(&inner) as _).unwrap());
    let mut filled = Filled::new(Arc::clone(&device) as _, PAGES);
    filled.fill(0..3 * PAGES + 500, 1);
    // Below half of it, so that nobody folds; but not with a place for every page.
    let used = |filled: &Filled| filled.store.inner.journal.used();
    let half = filled.store.inner.journal.capacity() / 2;
    let (who, root) = (Caller::root(), filled.fs.root());
    for number in 0.. {
        if used(&filled) + PAGES * 64 > half {
            break;
        }
        let name = format!("some other file, number {number}");
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let other = filled.fs.create(&who, &root, name.as_bytes(), 0o644, flags);
        drop(other.unwrap());
    }
    assert_eq!(filled.left(), 500);
    assert!(used(&filled) < half);
    let before = device.history().written();
    filled.store.inner.write_early().unwrap();
    assert_eq!(filled.left(), 0, "once is enough");
    assert_eq!(device.history().written(), before);
    filled.commit();
    assert!(filled.read() == filled.bytes);
    let crashed = MemoryDevice::from_image("crashed", inner.image());
    assert!(content(Arc::new(crashed)) == filled.bytes);
}

#[test]
fn pages_that_were_written_before_are_not_asked_for_again_and_again() {
    let device = Arc::new(MemoryDevice::from_image("memory", formatted(128 << 20)));
    let mut filled = Filled::new(Arc::clone(&device) as _, 2 * PAGES);
    // They have their places, and what is there is to stay until the commit.
    filled.fill(0..filled.pages, 1);
    filled.commit();
    filled.fill(filled.pages..3 * filled.pages + PAGES, 2);
    let behind = filled.pages * 4;
    (behind..behind + 300 * 4).for_each(|sector| filled.write(sector, 3));
    assert_eq!(filled.left() as u64, PAGES + 300);
    filled.store.inner.write_early().unwrap();
    assert_eq!(filled.left(), 0, "more than can go were looked at in vain");
    assert!(filled.read() == filled.bytes);
    filled.commit();
    let crashed = MemoryDevice::from_image("crashed", device.image());
    assert!(content(Arc::new(crashed)) == filled.bytes);
}

#[test]
fn many_go_without_being_asked_for() {
    // With the usual journal a commit would be asked for when more than 14,336 pages wait; and what it took before it was
    // full does not go early.
    let options = FormatOptions {
        journal: Some(16 << 20),
        ..FormatOptions::default()
    };
    let image = formatted_with(512 << 20, &options);
    let device = Arc::new(MemoryDevice::from_image("memory", image));
    let mut filled = Filled::new(Arc::clone(&device) as _, 2 * EARLY_MIN);
    let durable = |filled: &Filled| filled.store.inner.journal.durable();
    let before = durable(&filled);
    filled.fill(0..3 * filled.pages + EARLY_MIN * 5 / 4, 1);
    let begun = Instant::now();
    while filled.left() as u64 >= EARLY_MIN {
        assert!(begun.elapsed() < Duration::from_mins(1), "nobody came");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(durable(&filled), before, "not by a commit");
    assert!(filled.read() == filled.bytes);
    filled.commit();
    let crashed = MemoryDevice::from_image("crashed", device.image());
    assert!(content(Arc::new(crashed)) == filled.bytes);
}
