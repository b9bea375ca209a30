//! Volumes in sparse images on a host with less space than they promise.

use crate::stage::{assert_sound, opened_with};
use holdfast_core::FileSystem;
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_testkit::device::SparseDevice;
use holdfast_types::{Caller, Errno, Fallocate, OpenFlags, Result};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 256 * MIB;

struct World {
    host: Arc<SparseDevice>,
    store: Arc<VolumeStore>,
    fs: FileSystem,
    who: Caller,
}

impl World {
    /// A volume of 256 MiB on a host with this much space.
    fn new(room: u64) -> Self {
        let memory = Arc::new(MemoryDevice::new(SIZE));
        let host = Arc::new(SparseDevice::new(memory, room).telling());
        let device: Arc<dyn BlockDevice> = host.clone();
        let options = FormatOptions {
            seed: Some(1),
            journal: Some(2 * MIB),
            ..FormatOptions::default()
        };
        format(&device, &options).unwrap();
        Self::open(host)
    }

    fn open(host: Arc<SparseDevice>) -> Self {
        let (store, fs) = opened_with(&(host.clone() as _), &OpenOptions::default());
        let who = Caller::root();
        Self {
            host,
            store,
            fs,
            who,
        }
    }

    /// Writes files of this length until there is no space; returns the count.
    fn fill(&self, prefix: &str, len: usize) -> u64 {
        let bytes = vec![7; len];
        for number in 0.. {
            let written = self.write(&format!("{prefix}{number}"), &bytes);
            match written {
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error, Errno::ENOSPC);
                    return number;
                }
            }
        }
        unreachable!()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let root = self.fs.root();
        let file = self
            .fs
            .create(&self.who, &root, name.as_bytes(), 0o644, flags)?;
        let mut at = 0;
        while at < bytes.len() {
            at += self.fs.write(&self.who, &file, at as u64, &bytes[at..])?;
        }
        Ok(())
    }

    fn remove(&self, name: &str) {
        let root = self.fs.root();
        self.fs.unlink(&self.who, &root, name.as_bytes()).unwrap();
    }

    /// It can be synced completely, and is sound.
    fn end(self) -> Arc<SparseDevice> {
        self.fs.sync().unwrap();
        self.fs.close().unwrap();
        self.store.close().unwrap();
        let device: Arc<dyn BlockDevice> = self.host.clone();
        assert_sound(&device);
        self.host
    }

    fn available(&self) -> u64 {
        let space = self.fs.statfs().unwrap();
        space.blocks_available * u64::from(space.block_size)
    }
}

#[test]
fn what_the_host_has_no_room_for_is_refused_and_the_volume_goes_on() {
    let world = World::new(64 * MIB);
    let available = world.available();
    assert!(available < 64 * MIB && available > 32 * MIB, "{available}");
    let files = world.fill("f", MIB as usize);
    assert!((20..60).contains(&files), "{files}");
    world.fs.sync().unwrap();
    assert!(world.host.left() > 0, "something is left for nodes");
    // Small files are refused, too; allocated blocks can be written.
    world.fill("small", 3000);
    world.write("f0", &vec![8; MIB as usize]).unwrap();
    // Deleting makes space, once the host was told by discards.
    for number in 0..10 {
        world.remove(&format!("f{number}"));
    }
    let again = world.fill("g", MIB as usize);
    assert!(again >= 9, "{again} fit where 10 were");
    world.end();
}

#[test]
fn room_that_the_host_gets_is_used_without_opening_the_volume_again() {
    let world = World::new(48 * MIB);
    world.fill("f", MIB as usize);
    world.host.grant(32 * MIB);
    let more = world.fill("g", MIB as usize);
    assert!(more >= 28, "{more}");
    let host = world.end();
    let world = World::open(host);
    world.fill("h", MIB as usize);
    world.end();
}

#[test]
fn what_was_allocated_and_not_written_has_its_room() {
    let world = World::new(64 * MIB);
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    let root = world.fs.root();
    let file = world
        .fs
        .create(&world.who, &root, b"promised", 0o644, flags);
    let file = file.unwrap();
    world
        .fs
        .fallocate(&world.who, &file, Fallocate::empty(), 0, 16 * MIB)
        .unwrap();
    world.fs.sync().unwrap();
    world.fill("f", MIB as usize);
    world.fs.sync().unwrap();
    let bytes = vec![9; MIB as usize];
    for at in 0..16 {
        let written = world.fs.write(&world.who, &file, at * MIB, &bytes);
        assert_eq!(written, Ok(bytes.len()));
        world.fs.fsync(&file, false).unwrap();
    }
    drop((file, root));
    world.end();
}
