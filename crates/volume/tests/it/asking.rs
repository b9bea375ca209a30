//! A full volume refuses what has no room, and goes on: what is asked first changes nothing if it is refused.

use holdfast_core::{FileSystem, Node, OpenFile, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{Caller, Errno, Fallocate, OpenFlags, RenameFlags, Result, SetAttr, XattrSet};
use holdfast_volume::{CheckOptions, FormatOptions, OpenOptions, VolumeStore, check, format};
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
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
        let options = FormatOptions {
            seed: Some(1),
            ..FormatOptions::default()
        };
        format(&device, &options).unwrap();
        Self::open(device)
    }

    fn open(device: Arc<dyn BlockDevice>) -> Self {
        let options = OpenOptions::default();
        let store = Arc::new(VolumeStore::open(Arc::clone(&device), &options).unwrap());
        let fs = FileSystem::new(store.clone(), Options::default()).unwrap();
        let who = Caller::root();
        Self {
            device,
            store,
            fs,
            who,
        }
    }

    /// As after a crash: what was not committed may be gone.
    fn crashed(self) -> Self {
        let device = Arc::clone(&self.device);
        drop(self);
        Self::open(device)
    }

    /// Closed, found without a fault, and opened again.
    fn again(self) -> Self {
        self.fs.close().unwrap();
        self.store.close().unwrap();
        let device = Arc::clone(&self.device);
        drop(self);
        let report = check(&device, &CheckOptions::default(), &|_, _, _| {});
        assert!(report.is_clean(), "{report:?}");
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

    /// Fills what is left with one file.
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

/// Does it until it is refused for want of room; says how often it was done.
fn until_refused(what: &str, most: usize, mut step: impl FnMut(usize) -> Result<()>) -> usize {
    for number in 0..most {
        match step(number) {
            Ok(()) => {}
            Err(Errno::ENOSPC) => return number,
            Err(error) => panic!("{what}, number {number}: {error}"),
        }
    }
    most
}

/// Small files, and then no room.
fn small_files(len: usize, number: usize) -> Volume {
    let volume = Volume::make(64 * MIB);
    for number in 0..number {
        let name = format!("small-{number}");
        volume.write(&name, 0, &vec![number as u8; len]).unwrap();
    }
    volume.fs.sync().unwrap();
    volume.fill();
    volume
}

#[test]
fn a_value_that_has_no_room_is_refused_and_all_else_goes_on() {
    let volume = small_files(100, 200);
    let value = vec![3; 60_000];
    let set = |number: usize| {
        let node = volume.node(&format!("small-{}", number % 200));
        let name = format!("user.v{}", number / 200);
        let set = XattrSet::Any;
        let fs = &volume.fs;
        fs.setxattr(&volume.who, &node, name.as_bytes(), &value, set)
    };
    let done = until_refused("values", 2000, set);
    assert!(done < 2000);
    let meta = volume.fs.getattr(&volume.node("small-199"));
    assert_eq!(meta.size, 100);
    volume.must_be_alive(&[("small-3", &[3; 100])]);
}

#[test]
fn names_and_targets_that_have_no_room_are_refused_and_all_else_goes_on() {
    let volume = small_files(100, 200);
    let (fs, who, root) = (&volume.fs, &volume.who, volume.fs.root());
    let long = |number: usize| format!("{number:x>250}").into_bytes();
    let node = volume.node("small-7");
    let links = until_refused("links", 200_000, |number| {
        fs.link(who, &node, &root, &long(number))
    });
    assert!(links < 200_000);
    let targets = until_refused("targets", 50_000, |number| {
        let name = format!("target-{number}");
        fs.symlink(who, &root, name.as_bytes(), &[b't'; 4000])
            .map(drop)
    });
    assert!(targets < 50_000);
    let renames = until_refused("renames", 200, |number| {
        let (from, to) = (format!("small-{number}"), long(number + 1_000_000));
        let flags = RenameFlags::empty();
        fs.rename(who, &root, from.as_bytes(), &root, &to, flags)
    });
    assert!(renames <= 200);
    drop((node, root));
    volume.must_be_alive(&[]);
}

#[test]
fn bytes_that_need_a_block_are_refused_and_what_was_accepted_becomes_durable() {
    let volume = small_files(2000, 1000);
    let file = volume.file("filler").unwrap();
    let size = volume.fs.getattr(file.node()).size;
    volume.truncate(&file, size - 40 * 4096);
    drop(file);
    let done = until_refused("appends", 1000, |number| {
        volume.write(&format!("small-{number}"), 2000, &[9; 100])
    });
    assert!((1..1000).contains(&done), "{done} were accepted");
    volume.fs.sync().unwrap();
    volume.write("touched", 0, b"").or_else(full).unwrap();
    let mut grown = vec![done as u8 - 1; 2000];
    grown.extend([9; 100]);
    volume.must_be_alive(&[(&format!("small-{}", done - 1), &grown)]);
}

fn full(error: Errno) -> Result<()> {
    match error {
        Errno::ENOSPC => Ok(()),
        other => Err(other),
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
                // Each has had credit of its own.
                together.wait();
            });
        }
    });
    volume.fill();
    let free = volume.free();
    assert!(free <= RESERVE, "refused with {free} blocks free");
    volume.must_be_alive(&[]);
}
