//! Volumes filled completely in every way, and emptied again.

use crate::stage::{formatted, opened};
use holdfast_core::store::{Behind as _, Change, Intent};
use holdfast_core::{FileSystem, Store as _};
use holdfast_device::BlockDevice;
use holdfast_types::{Caller, Errno, Fallocate, OpenFlags, Result, XattrSet};
use holdfast_volume::{FormatOptions, VolumeStore};
use std::sync::Arc;

const MIB: u64 = 1 << 20;
/// One volume as it is, one that is reopened while full.
const ROUNDS: usize = 2;

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
            journal: Some(512 << 10),
            ..FormatOptions::default()
        };
        let device = formatted(size, &options);
        Self::open(device)
    }

    fn open(device: Arc<dyn BlockDevice>) -> Self {
        let (store, fs) = opened(&device);
        let who = Caller::root();
        Self {
            device,
            store,
            fs,
            who,
        }
    }

    fn again(self) -> Self {
        self.fs.close().unwrap();
        self.store.close().unwrap();
        let device = Arc::clone(&self.device);
        drop(self);
        Self::open(device)
    }

    fn used(&self) -> u64 {
        let space = self.fs.statfs().unwrap();
        space.blocks - space.blocks_available
    }

    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let root = self.fs.root();
        let file = self
            .fs
            .open_at(&self.who, &root, name.as_bytes(), flags, 0o600)?;
        match self.fs.write(&self.who, &file, offset, bytes)? {
            all if all == bytes.len() => Ok(()),
            _ => Err(Errno::ENOSPC),
        }
    }

    fn allocate(&self, name: &str, len: u64) -> Result<()> {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let root = self.fs.root();
        let file = self
            .fs
            .open_at(&self.who, &root, name.as_bytes(), flags, 0o600)?;
        let size = self.fs.getattr(file.node()).size;
        self.fs
            .fallocate(&self.who, &file, Fallocate::empty(), size, len)
    }

    fn remove_all(&self) {
        let root = self.fs.root();
        let mut names = Vec::new();
        let dir = self.fs.open(&self.who, &root, OpenFlags::NOATIME).unwrap();
        self.fs
            .read_dir(&dir, 0, &mut |entry| {
                if entry.name != b"." && entry.name != b".." {
                    names.push((entry.name.to_vec(), entry.kind.is_dir()));
                }
                true
            })
            .unwrap();
        for (name, is_dir) in names {
            let removed = if is_dir {
                self.fs.rmdir_at(&self.who, &root, &name)
            } else {
                self.fs.unlink_at(&self.who, &root, &name)
            };
            removed.unwrap_or_else(|error| panic!("a full volume keeps a file: {error}"));
        }
    }
}

/// Takes space until there is none: repeats a numbered step.
fn fill(volume: &Volume, what: &str, step: &dyn Fn(&Volume, u64) -> Result<()>) {
    for number in 0..1_000_000 {
        match step(volume, number) {
            Ok(()) => {}
            Err(Errno::ENOSPC) => return,
            Err(error) => panic!("{what}, step {number}: {error}"),
        }
    }
    panic!("{what}: there is no end");
}

fn fills_and_empties(what: &str, size: u64, step: &dyn Fn(&Volume, u64) -> Result<()>) {
    let mut volume = Volume::make(size).again();
    let empty = volume.used();
    for round in 0..ROUNDS {
        fill(&volume, what, step);
        volume
            .fs
            .sync()
            .unwrap_or_else(|error| panic!("{what}, round {round}: a full volume: {error}"));
        if round % 2 == 1 {
            volume = volume.again();
            fill(&volume, what, &|volume, number| {
                step(volume, number + 2_000_000)
            });
        }
        volume.store.checkpoint().unwrap();
        volume.remove_all();
        // Freed blocks return with a commit, nodes with the next checkpoint.
        volume = volume.again().again();
        assert_eq!(volume.used(), empty, "{what}, round {round}");
    }
}

fn in_all_sizes(what: &str, step: &dyn Fn(&Volume, u64) -> Result<()>) {
    for size in [2 * MIB, 5 * MIB] {
        fills_and_empties(&format!("{what}, {size} bytes"), size, step);
    }
}

#[test]
fn empty_files_fill_a_volume() {
    in_all_sizes("empty files", &|volume, number| {
        // Long names, so that there are not too many to remove.
        volume.write(&format!("{number:0>230}"), 0, b"")
    });
}

#[test]
fn small_files_fill_a_volume() {
    in_all_sizes("small files", &|volume, number| {
        volume.write(&format!("file-{number}"), 0, &[7; 1500])
    });
}

#[test]
fn files_of_some_blocks_fill_a_volume() {
    in_all_sizes("files", &|volume, number| {
        volume.write(&format!("file-{number}"), 0, &[7; 10_000])
    });
}

#[test]
fn one_large_file_fills_a_volume() {
    in_all_sizes("large file", &|volume, number| {
        volume.write("file", number % 2_000_000 * 4096, &[7; 4096])
    });
}

#[test]
fn preallocated_files_fill_a_volume() {
    in_all_sizes("fallocate", &|volume, _| volume.allocate("file", 100_000));
}

#[test]
fn blocks_between_holes_fill_a_volume() {
    in_all_sizes("holes", &|volume, number| {
        volume.write("file", number % 2_000_000 * 12_288, &[7; 100])
    });
}

#[test]
fn directories_fill_a_volume() {
    in_all_sizes("directories", &|volume, number| {
        let (fs, root) = (&volume.fs, volume.fs.root());
        // As long as that of an empty file, for the same reason.
        let name = format!("{number:0>230}");
        fs.mkdir_at(&volume.who, &root, name.as_bytes(), 0o700)?;
        Ok(())
    });
}

#[test]
fn symbolic_links_fill_a_volume() {
    in_all_sizes("symbolic links", &|volume, number| {
        let (fs, root) = (&volume.fs, volume.fs.root());
        fs.symlink_at(
            &volume.who,
            &root,
            format!("{number}").as_bytes(),
            &[b'x'; 1000],
        )?;
        Ok(())
    });
}

#[test]
fn attributes_fill_a_volume() {
    in_all_sizes("attributes", &|volume, number| {
        let name = format!("file-{number}");
        volume.write(&name, 0, b"")?;
        let node = volume
            .fs
            .resolve(&volume.who, &volume.fs.root(), name.as_bytes(), false)?;
        let len = if number % 2 == 0 { 3000 } else { 30_000 };
        let value = vec![7; len];
        volume
            .fs
            .setxattr(&volume.who, &node, b"user.some", &value, XattrSet::Any)
    });
}

#[test]
fn what_a_writer_was_promised_is_there_however_many_commits_come_before_his_change() {
    const PAGES: u64 = 1000;
    let volume = Volume::make(8 * MIB);
    volume.write("mine", 0, b"1").unwrap();
    let who = &volume.who;
    let mine = volume.fs.lookup(who, &volume.fs.root(), b"mine").unwrap();
    let data = vec![9; (PAGES * 4096) as usize];
    let write = [Change::Write {
        ino: mine.ino(),
        offset: 0,
        data: &data,
    }];
    let mut held = volume
        .store
        .reserve(&Intent {
            pages: PAGES,
            moved: 1,
            ..Intent::of(&write)
        })
        .unwrap();
    // Other threads change, commit, and take all space.
    let others = || {
        for round in 0..3 {
            volume.write("others", 0, &[round]).unwrap();
            volume.store.commit(None).unwrap();
        }
        let chunk = vec![7; 16 << 10];
        let mut at = 0;
        while volume.write("others", at, &chunk).is_ok() {
            at += chunk.len() as u64;
        }
        assert!(at > MIB, "{at} bytes only");
        volume.store.commit(None).unwrap();
    };
    std::thread::scope(|scope| scope.spawn(others).join().unwrap());
    volume.store.apply(&mut held, &write).unwrap();
    volume.store.commit(None).unwrap();
    let mut read = vec![0; data.len()];
    volume.store.read_data(mine.ino(), 0, &mut read).unwrap();
    assert!(read == data);
}
