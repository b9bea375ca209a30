//! The memory counted for inodes, names and changes is what the allocator hands out for them. One
//! test, because the bytes of the whole process are counted.

mod sys;

use holdfast_core::budget::{Class, Memory, Usage};
use holdfast_core::frame;
use holdfast_core::{FileSystem, Options};
use holdfast_device::{BlockDevice, FileDevice};
use holdfast_types::{Caller, FileType, OpenFlags, RenameFlags, SetAttr, XattrSet};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::sync::Arc;
use sys::allocated;

const FILES: u64 = 100_000;

/// A volume that commits only on request, with unlimited memory.
struct World {
    store: Arc<VolumeStore>,
    fs: FileSystem,
    memory: Arc<Memory>,
    who: Caller,
}

impl World {
    fn open(device: &Arc<dyn BlockDevice>) -> Self {
        let options = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = Arc::new(VolumeStore::open(Arc::clone(device), &options).unwrap());
        let memory = Memory::separate(u64::MAX);
        let shared = Arc::clone(&memory);
        let fs = FileSystem::within(Arc::clone(&store) as _, Options::default(), shared).unwrap();
        Self {
            store,
            fs,
            memory,
            who: Caller::root(),
        }
    }

    /// Nothing in memory, everything in the trees.
    fn again(self, device: &Arc<dyn BlockDevice>) -> Self {
        self.fs.close().unwrap();
        self.store.close().unwrap();
        drop(self);
        Self::open(device)
    }

    fn usage(&self) -> Usage {
        self.memory.look();
        self.memory.seen().usage
    }

    /// Frames count with what they take, used by a file or not.
    fn counted(&self) -> i64 {
        let usage = self.usage();
        let others = usage.total() - usage.of(Class::Content) - usage.of(Class::Garbage);
        (others + frame::allocated()) as i64
    }

    /// Runs `work`, and compares the growth of the count with the allocator's.
    fn counts(&self, what: &str, work: impl FnOnce(&Self)) {
        let before = (allocated(), self.counted());
        work(self);
        let after = (allocated(), self.counted());
        let (taken, counted) = (after.0 - before.0, after.1 - before.1);
        let part = counted as f64 / taken as f64;
        assert!(
            taken > 1 << 20 && (0.9..1.1).contains(&part),
            "{what}: {counted} of {taken} bytes"
        );
    }

    /// Does something with every `n`th file.
    fn each(&self, step: usize, work: impl Fn(&Self, u64, &[u8])) {
        for number in (0..FILES).step_by(step) {
            work(self, number, format!("f{number}").as_bytes());
        }
    }

    fn chmod(&self, name: &[u8], perm: u16) {
        let file = self.fs.lookup(&self.who, &self.fs.root(), name).unwrap();
        let perm = SetAttr {
            perm: Some(perm),
            ..SetAttr::default()
        };
        self.fs.setattr(&self.who, &file, &perm, None).unwrap();
    }

    /// Some with an attribute.
    fn make_small_files(&self) {
        let (fs, who, root) = (&self.fs, &self.who, self.fs.root());
        let dir = fs.mkdir(who, &root, b"d", 0o755).unwrap();
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        for number in 0..FILES / 10 {
            let name = format!("{number}");
            let file = fs.create(who, &dir, name.as_bytes(), 0o644, flags).unwrap();
            fs.write(who, &file, 0, &[1; 600]).unwrap();
            if number % 10 == 0 {
                let (how, value) = (XattrSet::Any, [1; 100]);
                fs.setxattr(who, file.node(), b"user.one", &value, how)
                    .unwrap();
            }
        }
    }

    fn read_small_files(&self) {
        let (fs, who, root) = (&self.fs, &self.who, self.fs.root());
        let dir = fs.lookup(who, &root, b"d").unwrap();
        for number in 0..FILES / 10 {
            let name = format!("{number}");
            let file = fs.lookup(who, &dir, name.as_bytes()).unwrap();
            let open = fs.open(who, &file, OpenFlags::empty()).unwrap();
            assert_eq!(fs.read(&open, 0, &mut [0; 600]), Ok(600));
        }
    }
}

#[test]
fn what_is_counted_is_what_the_allocator_handed_out() {
    let path = std::env::temp_dir().join(format!("holdfast-counted-{}", std::process::id()));
    let device = FileDevice::create(&path, 4 << 30).unwrap();
    std::fs::remove_file(&path).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(device);
    format(&device, &FormatOptions::default()).unwrap();

    let world = World::open(&device);
    world.counts("creations", |world| {
        world.each(1, |world, _, name| {
            let (root, kind) = (world.fs.root(), FileType::Regular);
            let made = world.fs.mknod(&world.who, &root, name, kind, 0o644, 0);
            made.unwrap();
        });
    });

    let world = world.again(&device);
    world.chmod(b"f1", 0o600);
    world.counts("attributes here and there", |world| {
        world.each(64, |world, _, name| world.chmod(name, 0o600));
    });
    world.counts("all attributes", |world| {
        world.each(1, |world, _, name| world.chmod(name, 0o640));
    });

    let world = world.again(&device);
    world.counts("new names", |world| {
        world.each(2, |world, number, name| {
            let (root, to) = (world.fs.root(), format!("g{number}"));
            let (who, flags) = (&world.who, RenameFlags::empty());
            world
                .fs
                .rename(who, &root, name, &root, to.as_bytes(), flags)
                .unwrap();
        });
    });

    let world = world.again(&device);
    world.counts("names that went", |world| {
        world.each(2, |world, number, _| {
            let (root, name) = (world.fs.root(), format!("g{number}"));
            world.fs.unlink(&world.who, &root, name.as_bytes()).unwrap();
        });
    });

    let world = world.again(&device);
    world.counts("small files", World::make_small_files);
    let world = world.again(&device);
    world.counts("files as they are loaded", World::read_small_files);
    drop(world.again(&device));
}
