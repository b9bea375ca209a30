//! What a killed process leaves: everything written to the device's cache, in order.

use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::device::HeldDevice;
use holdfast_types::{Caller, OpenFlags};
use holdfast_volume::{BLOCK, FormatOptions, OpenOptions, VolumeStore, format};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The host's cache, lost by a crash.
const CACHE: Option<u64> = Some(1);
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    memory: Arc<MemoryDevice>,
    held: Arc<HeldDevice>,
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

fn opened(device: Arc<dyn BlockDevice>, options: &OpenOptions) -> (Arc<VolumeStore>, FileSystem) {
    let store = Arc::new(VolumeStore::open(device, options).unwrap());
    let fs = FileSystem::new(Arc::clone(&store) as _, Options::default()).unwrap();
    (store, fs)
}

impl World {
    /// A volume with this commit interval, and a file of four pages in it.
    fn new(commit_every: Duration) -> Self {
        let memory = Arc::new(MemoryDevice::new(64 << 20).with_cache_identity(CACHE));
        let device: Arc<dyn BlockDevice> = memory.clone();
        format(&device, &FormatOptions::default()).unwrap();
        let held = Arc::new(HeldDevice::new(device));
        let options = OpenOptions {
            commit_every: Some(commit_every),
            ..OpenOptions::default()
        };
        let (store, fs) = opened(held.clone(), &options);
        let world = Self {
            memory,
            held,
            store,
            fs,
        };
        world.write(b"pages", &[1; 4 * BLOCK]);
        world.fs.sync().unwrap();
        world
    }

    fn write(&self, name: &[u8], bytes: &[u8]) {
        let (who, flags) = (Caller::root(), OpenFlags::CREATE | OpenFlags::READ_WRITE);
        let path = [b"/", name].concat();
        let file = self
            .fs
            .open_at(&who, &self.fs.root(), &path, flags, 0o644)
            .unwrap();
        self.fs.write(&who, &file, 0, bytes).unwrap();
    }

    /// A file's contents if the process were killed now, or the host crashed.
    fn left(&self, name: &[u8], cache: Option<u64>) -> Option<Vec<u8>> {
        let copy = MemoryDevice::from_image("copy", self.memory.image()).with_cache_identity(cache);
        let never = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let (_store, fs) = opened(Arc::new(copy), &never);
        let (who, path) = (Caller::root(), [b"/", name].concat());
        let file = fs.open_at(&who, &fs.root(), &path, OpenFlags::empty(), 0);
        let mut found = vec![0; 8 * BLOCK];
        let len = fs.read(&file.ok()?, 0, &mut found).unwrap();
        found.truncate(len);
        Some(found)
    }

    fn wait_until_left(&self, name: &[u8], bytes: &[u8]) {
        let until = Instant::now() + PATIENCE;
        while self.left(name, CACHE).as_deref() != Some(bytes) {
            assert!(Instant::now() < until, "it is not handed over");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn close(&self) {
        self.fs.close().unwrap();
        self.store.close().unwrap();
    }
}

/// Releases what a failed test holds, for which other threads would wait.
impl Drop for World {
    fn drop(&mut self) {
        self.held.release();
    }
}

/// While a flush is held, changes are written all the same, including overwrites.
fn is_written_beside_a_flush(world: &World) {
    assert!(world.held.is_held(|| false, PATIENCE));
    world.write(b"beside", b"new");
    world.write(b"pages", &[2; 4 * BLOCK]);
    world.wait_until_left(b"beside", b"new");
    world.wait_until_left(b"pages", &[2; 4 * BLOCK]);
    let crashed = CACHE.map(|cache| cache + 1);
    assert_eq!(world.left(b"beside", crashed), None);
    world.held.release();
}

#[test]
fn what_is_changed_beside_the_flush_of_an_fsync_outlives_the_process() {
    let world = Arc::new(World::new(Duration::from_secs(3600)));
    world.write(b"pages", &[3; BLOCK]);
    world.write(b"synced", b"old");
    world.held.hold_flushes();
    let syncs = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.fs.sync().unwrap())
    };
    is_written_beside_a_flush(&world);
    syncs.join().unwrap();
    let crashed = CACHE.map(|cache| cache + 1);
    assert_eq!(world.left(b"synced", crashed).as_deref(), Some(&b"old"[..]));
    world.close();
}

#[test]
fn what_is_changed_beside_the_volumes_own_commit_outlives_the_process() {
    let world = World::new(Duration::from_secs(1));
    world.held.hold_flushes();
    world.write(b"pages", &[3; BLOCK]);
    is_written_beside_a_flush(&world);
    world.close();
}
