//! A full volume refuses what has no space, and goes on. An operation that is refused changes
//! nothing.

use crate::stage::{assert_sound, formatted, opened_with};
use holdfast_core::{FileSystem, Node, OpenFile};
use holdfast_device::BlockDevice;
use holdfast_types::{Caller, Errno, Fallocate, OpenFlags, Result, SetAttr};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore};
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const KIB: usize = 1 << 10;

struct Volume {
    device: Arc<dyn BlockDevice>,
    store: Arc<VolumeStore>,
    fs: FileSystem,
    who: Caller,
}

impl Volume {
    fn make(size: u64) -> Self {
        let options = FormatOptions {
            seed: Some(1),
            ..FormatOptions::default()
        };
        let device = formatted(size, &options);
        Self::open(device)
    }

    fn open(device: Arc<dyn BlockDevice>) -> Self {
        let (store, fs) = opened_with(&device, &OpenOptions::default());
        let who = Caller::root();
        Self {
            device,
            store,
            fs,
            who,
        }
    }

    /// As after a crash: uncommitted changes may be lost.
    fn crashed(self) -> Self {
        let device = Arc::clone(&self.device);
        drop(self);
        Self::open(device)
    }

    /// Closes, checks and reopens it.
    fn again(self) -> Self {
        self.fs.close().unwrap();
        self.store.close().unwrap();
        let device = Arc::clone(&self.device);
        drop(self);
        assert_sound(&device);
        Self::open(device)
    }

    fn file(&self, name: &str) -> Result<OpenFile> {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let root = self.fs.root();
        self.fs
            .open_at(&self.who, &root, name.as_bytes(), flags, 0o644)
    }

    fn node(&self, name: &str) -> Node {
        let root = self.fs.root();
        self.fs.lookup(&self.who, &root, name.as_bytes()).unwrap()
    }

    /// Writes all of it, or fails.
    fn write(&self, name: &str, at: u64, bytes: &[u8]) -> Result<()> {
        let file = self.file(name)?;
        let mut done = 0;
        while done < bytes.len() {
            let offset = at + done as u64;
            done += self.fs.write(&self.who, &file, offset, &bytes[done..])?;
        }
        Ok(())
    }

    fn truncate(&self, file: &OpenFile, size: u64) {
        let set = SetAttr {
            size: Some(size),
            ..SetAttr::default()
        };
        let through = Some(file);
        self.fs
            .setattr(&self.who, file.node(), &set, through)
            .unwrap();
    }

    fn free(&self) -> u64 {
        self.fs.statfs().unwrap().blocks_available
    }

    fn blocks(&self, name: &str) -> u64 {
        self.fs.getattr(&self.node(name)).blocks
    }

    /// Fills the rest of the volume with one file.
    fn fill(&self) {
        let file = self.file("filler").unwrap();
        let mut at = self.fs.getattr(file.node()).size;
        for len in [MIB as usize, 4 * KIB, 1] {
            let chunk = vec![0xf1; len];
            loop {
                match self.fs.write(&self.who, &file, at, &chunk) {
                    Ok(written) => at += written as u64,
                    Err(Errno::ENOSPC) => break,
                    Err(error) => panic!("filling, at {at}: {error}"),
                }
            }
        }
        self.fs.sync().unwrap();
    }

    /// It works as before, and everything can be removed.
    fn must_be_alive(self, kept: &[(&str, &[u8])]) {
        self.fs.sync().unwrap();
        let volume = self.crashed().again();
        for (name, bytes) in kept {
            let file = volume.file(name).unwrap();
            let mut found = vec![0; bytes.len()];
            assert_eq!(volume.fs.read(&file, 0, &mut found), Ok(bytes.len()));
            assert!(found == *bytes, "{name} has other bytes");
        }
        let root = volume.fs.root();
        let mut names = Vec::new();
        let dir = volume
            .fs
            .open(&volume.who, &root, OpenFlags::NOATIME)
            .unwrap();
        let mut meet = |name: &[u8]| names.push(name.to_vec());
        let mut each = |entry: holdfast_core::DirEntry<'_>| {
            if !matches!(entry.name, b"." | b"..") {
                meet(entry.name);
            }
            true
        };
        volume.fs.read_dir(&dir, 0, &mut each).unwrap();
        drop(dir);
        for name in names {
            volume.fs.unlink(&volume.who, &root, &name).unwrap();
        }
        drop(root);
        volume.write("after", 0, &[7; 8192]).unwrap();
        let volume = volume.again();
        assert!(volume.free() > 10_000, "{} blocks free", volume.free());
    }
}

#[test]
fn a_copy_over_what_has_its_blocks_needs_no_others_or_is_refused() {
    let volume = Volume::make(64 * MIB);
    let some = |first: u8| -> Vec<u8> {
        let bytes = (0..20 * MIB).map(|at| (at / 4096) as u8 ^ first);
        bytes.collect()
    };
    volume.write("from", 0, &some(1)).unwrap();
    volume.write("to", 0, &some(2)).unwrap();
    volume.fs.sync().unwrap();
    volume.fill();
    let (from, to) = (volume.file("from").unwrap(), volume.file("to").unwrap());
    let (mut at, len) = (0, 20 * MIB);
    while at < len {
        let done = volume
            .fs
            .copy_file_range(&volume.who, &from, at, &to, at, len - at);
        match done {
            Ok(done) => at += done,
            Err(Errno::ENOSPC) => break,
            Err(error) => panic!("after {at} bytes: {error}"),
        }
    }
    assert_eq!(at, len, "all of it has its blocks");
    drop((from, to));
    volume.must_be_alive(&[("to", &some(1))]);
}

#[test]
fn what_was_allocated_is_there_after_a_remount() {
    let promised = 2048;
    for how in ["nothing", "truncate", "fsync", "size", "part"] {
        let volume = Volume::make(64 * MIB);
        let file = volume.file("file").unwrap();
        let (fs, who) = (&volume.fs, &volume.who);
        let mode = match how {
            "size" => Fallocate::empty(),
            _ => Fallocate::KEEP_SIZE,
        };
        fs.fallocate(who, &file, mode, 0, MIB).unwrap();
        match how {
            "truncate" => volume.truncate(&file, 4096),
            "fsync" => fs.fsync(&file, false).unwrap(),
            "part" => {
                fs.write(who, &file, 0, &[1; 100]).unwrap();
            }
            _ => {}
        }
        assert_eq!(volume.blocks("file"), promised, "{how}: while it is open");
        let free = volume.free();
        drop(file);
        let volume = volume.again();
        assert_eq!(volume.blocks("file"), promised, "{how}: opened again");
        assert!(
            volume.free().abs_diff(free) < 64,
            "{how}: core and store differ"
        );
        volume.fs.sync().unwrap();
        let volume = volume.crashed();
        assert_eq!(volume.blocks("file"), promised, "{how}: after a crash");
    }
}

#[test]
fn what_is_removed_is_room_for_who_asks_next() {
    let volume = Volume::make(512 * MIB);
    let chunk = vec![5; MIB as usize];
    let file = volume.file("filler").unwrap();
    let mut at = 0;
    while volume.free() > 64 * MIB / 4096 {
        at += volume.fs.write(&volume.who, &file, at, &chunk).unwrap() as u64;
    }
    drop(file);
    volume.fs.sync().unwrap();
    let root = volume.fs.root();
    for round in 0..1000 {
        let written = volume.write("temporary", 0, &chunk);
        assert_eq!(written, Ok(()), "round {round}");
        volume.fs.unlink(&volume.who, &root, b"temporary").unwrap();
    }
}

#[test]
fn what_other_threads_may_take_without_looking_is_fetched_before_anything_is_refused() {
    const RESERVE: u64 = 640;
    let volume = Volume::make(64 * MIB);
    let together = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (volume, together) = (&volume, &together);
            scope.spawn(move || {
                volume.file(&format!("file {thread}")).unwrap();
                // Each thread has had its own credit.
                together.wait();
            });
        }
    });
    volume.fill();
    let free = volume.free();
    assert!(free <= RESERVE, "refused with {free} blocks free");
    volume.must_be_alive(&[]);
}
