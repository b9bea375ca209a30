//! Journals with more changes than fit in memory, or in the free space.

use crate::stage::{assert_sound, formatted, opened_with};
use holdfast_core::FileSystem;
use holdfast_device::BlockDevice;
use holdfast_testkit::rng::Rng;
use holdfast_types::{Caller, Errno, Fallocate, FileType, OpenFlags, Result};
use holdfast_volume::{BLOCK, FormatOptions, OpenOptions, VolumeStore};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

struct World {
    device: Arc<dyn BlockDevice>,
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

impl World {
    fn make(size: u64, journal: u64) -> Self {
        let options = FormatOptions {
            seed: Some(1),
            journal: Some(journal),
            ..FormatOptions::default()
        };
        let device = formatted(size, &options);
        Self::open(device, None)
    }

    fn open(device: Arc<dyn BlockDevice>, changes: Option<u64>) -> Self {
        let options = OpenOptions {
            commit_every: None,
            changes,
            ..OpenOptions::default()
        };
        let (store, fs) = opened_with(&device, &options);
        Self { device, store, fs }
    }

    /// As after a crash.
    fn again(self, changes: Option<u64>) -> Self {
        let device = Arc::clone(&self.device);
        drop(self);
        Self::open(device, changes)
    }

    fn checkpoints(&self) -> u64 {
        self.store.activity().checkpoints.count
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let (who, root) = (Caller::root(), self.fs.root());
        let file = self
            .fs
            .open_at(&who, &root, name.as_bytes(), flags, 0o600)?;
        match self.fs.write(&who, &file, 0, bytes)? {
            all if all == bytes.len() => Ok(()),
            _ => Err(Errno::ENOSPC),
        }
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let (who, root) = (Caller::root(), self.fs.root());
        let flags = OpenFlags::empty();
        let file = self.fs.open_at(&who, &root, name.as_bytes(), flags, 0)?;
        let mut bytes = vec![0; 4 * BLOCK];
        let len = self.fs.read(&file, 0, &mut bytes)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    fn make_file(&self, name: &str) -> Result<()> {
        let (who, root) = (Caller::root(), self.fs.root());
        let made = self
            .fs
            .mknod(&who, &root, name.as_bytes(), FileType::Regular, 0o600, 0);
        made.map(drop)
    }

    /// Allocates all space to a new file, in steps of this size.
    fn allocate(&self, name: &str, piece: u64) {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let (who, root) = (Caller::root(), self.fs.root());
        let file = self
            .fs
            .open_at(&who, &root, name.as_bytes(), flags, 0o600)
            .unwrap();
        for number in 0.. {
            let taken = self
                .fs
                .fallocate(&who, &file, Fallocate::empty(), number * piece, piece);
            match taken {
                Ok(()) => {}
                Err(Errno::ENOSPC) => return,
                Err(error) => panic!("piece {number}: {error}"),
            }
        }
    }

    fn remove(&self, name: &str) {
        let (who, root) = (Caller::root(), self.fs.root());
        self.fs.unlink_at(&who, &root, name.as_bytes()).unwrap();
    }
}

/// The contents of a numbered file: some are inline, others have blocks.
fn bytes_of(number: u64) -> Vec<u8> {
    let len = if number.is_multiple_of(3) {
        2 * BLOCK
    } else {
        90
    };
    vec![(number % 251) as u8 + 1; len]
}

#[test]
fn a_journal_of_more_than_there_is_memory_for_goes_into_the_trees_as_it_is_replayed() {
    const COUNT: u64 = 6000;
    for in_one_commit in [false, true] {
        let world = World::make(128 * MIB, 8 * MIB);
        for number in 0..COUNT {
            world.write(&number.to_string(), &bytes_of(number)).unwrap();
            if number % 5 == 4 {
                // Its blocks are reused later.
                world.remove(&(number - 3).to_string());
            }
            if number % 500 == 0 && !in_one_commit {
                world.fs.sync().unwrap();
            }
        }
        world.fs.sync().unwrap();
        let made = world.checkpoints();
        assert_eq!(made, 0, "all of it is in the journal");
        assert_sound(&world.device);

        let world = world.again(Some(64 << 10));
        let folded = world.checkpoints();
        assert!(folded > 10, "{folded} checkpoints");
        let look = |world: &World| {
            for number in 0..COUNT {
                let found = world.read(&number.to_string());
                match number % 5 == 1 {
                    true => assert_eq!(found, Err(Errno::ENOENT), "{number}"),
                    false => assert_eq!(found, Ok(bytes_of(number)), "{number}"),
                }
            }
        };
        look(&world);
        assert_sound(&world.device);
        // What was checkpointed is not replayed again.
        let world = world.again(Some(0));
        assert!(world.checkpoints() < folded, "{}", world.checkpoints());
        look(&world);
        world.write("more", &bytes_of(0)).unwrap();
        world.store.checkpoint().unwrap();
        assert_sound(&world.device);
    }
}

/// Many names in a small volume without common prefixes, so that each takes its full length in the
/// trees.
fn name(number: u64) -> String {
    let mut random = Rng::new(number);
    let words = (0..5).map(|_| format!("{:016x}", random.bits()));
    words.collect()
}

const NAMES: u64 = 120_000;

fn many_names() -> World {
    let world = World::make(36 * MIB, 2 * MIB);
    for number in 0..NAMES {
        world.make_file(&name(number)).unwrap();
    }
    world
}

/// Removes few records of each leaf, so that the checkpoint rewrites nearly all nodes.
fn remove_some(world: &World) {
    let done = world.checkpoints();
    for number in (0..NAMES).step_by(60) {
        world.remove(&name(number));
    }
    world.fs.sync().unwrap();
    assert_eq!(world.checkpoints(), done, "all of it is in the journal");
}

#[test]
fn what_a_replay_brought_keeps_its_room_until_it_is_in_the_trees() {
    let world = many_names();
    world.store.checkpoint().unwrap();
    remove_some(&world);
    let world = world.again(None);
    assert_eq!(world.checkpoints(), 0);
    // Few records, and all space.
    world.allocate("filler", MIB / 2);
    world.fs.sync().unwrap();
    world.store.checkpoint().unwrap();
    assert_eq!(world.store.failure_reason(), None);
    assert_sound(&world.device);
}

#[test]
fn a_journal_for_which_the_trees_have_no_room_stays_in_memory_as_a_whole() {
    let world = many_names();
    world.allocate("filler", MIB / 2);
    world.store.checkpoint().unwrap();
    world.remove("filler");
    world.fs.sync().unwrap();
    remove_some(&world);
    let whole = world.store.activity().journal_used;
    // What it frees is free only after it.
    let world = world.again(Some(600 << 10));
    assert!(world.store.activity().journal_used >= whole, "all is there");
    assert_sound(&world.device);
    world.write("more", &[1; 4 * BLOCK]).unwrap();
    world.store.checkpoint().unwrap();
    assert_sound(&world.device);
    // In small steps there is space.
    let world = many_names();
    world.allocate("filler", MIB / 2);
    world.store.checkpoint().unwrap();
    world.remove("filler");
    world.fs.sync().unwrap();
    remove_some(&world);
    let world = world.again(Some(16 << 10));
    // One that fails is the last.
    assert!(world.checkpoints() > 10, "{}", world.checkpoints());
    assert_sound(&world.device);
}
