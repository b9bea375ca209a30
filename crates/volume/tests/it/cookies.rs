//! Cookies of directories that are loaded again: none is reused.

use crate::stage::{formatted, opened};
use holdfast_core::store::{Behind, Change};
use holdfast_core::{FileSystem, Options, Store};
use holdfast_device::BlockDevice;
use holdfast_types::{Caller, Errno, FileType, Ino, OpenFlags};
use holdfast_volume::{FormatOptions, VolumeStore};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// The names of a directory without `.` and `..`, and their cookies.
fn listed(fs: &FileSystem, dir: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let who = Caller::root();
    let flags = OpenFlags::DIRECTORY;
    let listing = fs.open_at(&who, &fs.root(), dir, flags, 0).unwrap();
    let mut names = Vec::new();
    let mut see = |entry: holdfast_core::DirEntry<'_>| {
        if !matches!(entry.name, b"." | b"..") {
            names.push((entry.name.to_vec(), entry.cookie));
        }
        true
    };
    fs.read_dir(&listing, 0, &mut see).unwrap();
    names
}

fn touch(fs: &FileSystem, path: &[u8]) {
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    fs.open_at(&Caller::root(), &fs.root(), path, flags, 0o644)
        .unwrap();
}

/// The ways in which a directory is loaded again.
#[derive(Clone, Copy, Debug)]
enum Again {
    Dropped,
    Checkpointed,
    Closed,
    Crashed,
}

struct Volume {
    device: Arc<dyn BlockDevice>,
    store: Arc<VolumeStore>,
    fs: FileSystem,
}

impl Volume {
    fn open(device: Arc<dyn BlockDevice>) -> Self {
        let (store, fs) = opened(&device);
        Self { device, store, fs }
    }

    fn again(self, how: Again) -> Self {
        match how {
            Again::Dropped => {}
            Again::Checkpointed => self.store.checkpoint().unwrap(),
            Again::Closed => {
                self.fs.close().unwrap();
                self.store.close().unwrap();
                return Self::open(self.device);
            }
            Again::Crashed => {
                self.fs.sync().unwrap();
                return Self::open(self.device);
            }
        }
        self.fs.drop_caches().unwrap();
        self
    }
}

/// `read_names` of the store agrees with a listing, and with the inodes. `end` exceeds all cookies
/// that names of the directory have or had.
fn assert_told(volume: &Volume, dir: Ino, listed: &[(Vec<u8>, u64)], end: u64) {
    assert_eq!(volume.store.end_cookie(dir), Ok(end));
    let mut names: Vec<&[u8]> = listed.iter().map(|(name, _)| &name[..]).collect();
    names.insert(0, b"none");
    let mut found = Vec::new();
    volume.store.look_up(dir, &names, &mut found).unwrap();
    assert_eq!(found.len(), names.len());
    assert_eq!(found.remove(0), None);
    for ((name, cookie), found) in listed.iter().zip(found) {
        let (entry, inode) = found.unwrap();
        let inode = inode.unwrap();
        assert_eq!((&*entry.name, entry.cookie), (&name[..], *cookie));
        assert_eq!((entry.ino, entry.kind), (inode.ino, inode.kind));
        assert_eq!((inode.nlink, inode.parent), (1, dir));
    }
}

const HOWS: [Again; 4] = [
    Again::Dropped,
    Again::Checkpointed,
    Again::Closed,
    Again::Crashed,
];

#[test]
fn a_cookie_that_went_does_not_come_back_with_the_directory() {
    for first in HOWS {
        for second in HOWS {
            let device = formatted(8 * MIB, &FormatOptions::default());
            let volume = Volume::open(device);
            let who = Caller::root();
            volume
                .fs
                .mkdir_at(&who, &volume.fs.root(), b"dir", 0o755)
                .unwrap();
            for name in [&b"dir/a"[..], b"dir/b", b"dir/c"] {
                touch(&volume.fs, name);
            }
            let names = listed(&volume.fs, b"dir");
            let last = names[2].1;
            let dir = volume.fs.resolve(&who, &volume.fs.root(), b"dir", true);
            let dir = dir.unwrap().ino();
            let volume = volume.again(first);
            assert_told(&volume, dir, &names, last + 1);
            for name in [&b"dir/c"[..], b"dir/b"] {
                volume.fs.unlink_at(&who, &volume.fs.root(), name).unwrap();
            }
            // Twice, as what was stored must be stored again.
            let volume = volume.again(second).again(first).again(second);
            assert_told(&volume, dir, &names[..1], last + 1);
            touch(&volume.fs, b"dir/d");
            let names = listed(&volume.fs, b"dir");
            assert_eq!(names[1].0, b"d");
            assert!(names[1].1 > last, "{first:?}, {second:?}: {names:?}");
            assert_told(&volume, dir, &names, names[1].1 + 1);
        }
    }
}

#[test]
fn a_name_that_leads_nowhere_is_damage() {
    let device = formatted(8 * MIB, &FormatOptions::default());
    let volume = Volume::open(device);
    let enter = Change::Enter {
        dir: Ino::ROOT,
        name: b"nowhere",
        cookie: 9,
        ino: Ino(1000),
        kind: FileType::Regular,
    };
    volume.store.change(&[enter]).unwrap();
    let look_up = |name: &[u8]| {
        let mut found = Vec::new();
        let told = volume.store.look_up(Ino::ROOT, &[name], &mut found);
        told.map(|()| found.pop().flatten())
    };
    let (entry, inode) = look_up(b"nowhere").unwrap().expect("the name is there");
    assert_eq!((entry.ino, inode), (Ino(1000), None));
    assert_eq!(look_up(b"elsewhere"), Ok(None));
    // The store is searched with and without all names in memory.
    let partial = Options {
        whole_directory: 0,
        ..Options::default()
    };
    for options in [Options::default(), partial] {
        let fs = FileSystem::new(volume.store.clone(), options).unwrap();
        let found = fs.lookup(&Caller::root(), &fs.root(), b"nowhere");
        assert_eq!(found.map(drop), Err(Errno::EUCLEAN));
    }
}
