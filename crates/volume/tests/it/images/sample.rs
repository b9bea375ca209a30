//! A tree with one of everything that a volume can hold, and the volume that holds it.
//!
//! The golden images were made by these steps, so they must not change. A new version of the
//! format, or a new kind of record, gets its own steps and images.

use holdfast_core::{FileSystem, OpenFile, Options, Store};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{
    Caller, Fallocate, FileFlags, FileType, OpenFlags, RenameFlags, SetAttr, SetTime, Time,
    XattrSet,
};
use holdfast_volume::{FormatOptions, Label, OpenOptions, VolumeStore, format};
use std::sync::Arc;

/// Bytes of a volume.
pub(crate) const SIZE: u64 = 4 << 20;
/// Files of the directory that has several leaves of names.
const MANY: u64 = 700;

/// Pseudo-random bytes.
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (at.wrapping_mul(31).wrapping_add(seed) % 251) as u8)
        .collect()
}

/// A caller, and the file system it changes.
pub(crate) struct Hand<'f> {
    pub(crate) fs: &'f FileSystem,
    who: Caller,
}

impl<'f> Hand<'f> {
    pub(crate) fn new(fs: &'f FileSystem) -> Self {
        let who = Caller::root().with_umask(0);
        Self { fs, who }
    }

    pub(crate) fn open(&self, path: &str) -> OpenFile {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let root = self.fs.root();
        self.fs
            .open_at(&self.who, &root, path.as_bytes(), flags, 0o640)
            .unwrap()
    }

    pub(crate) fn write(&self, path: &str, offset: u64, seed: u64, len: usize) {
        let (file, bytes) = (self.open(path), pattern(seed, len));
        assert_eq!(self.fs.write(&self.who, &file, offset, &bytes), Ok(len));
    }

    pub(crate) fn mkdir(&self, path: &str) {
        let root = self.fs.root();
        self.fs
            .mkdir_at(&self.who, &root, path.as_bytes(), 0o755)
            .unwrap();
    }

    pub(crate) fn node(&self, path: &str) -> holdfast_core::Node {
        let root = self.fs.root();
        self.fs
            .resolve(&self.who, &root, path.as_bytes(), false)
            .unwrap()
    }

    fn symlink(&self, path: &str, target: &[u8]) {
        let root = self.fs.root();
        self.fs
            .symlink_at(&self.who, &root, path.as_bytes(), target)
            .unwrap();
    }

    pub(crate) fn link(&self, from: &str, to: &str) {
        let root = self.fs.root();
        self.fs
            .link_at(&self.who, &self.node(from), &root, to.as_bytes())
            .unwrap();
    }

    pub(crate) fn unlink(&self, path: &str) {
        let root = self.fs.root();
        self.fs
            .unlink_at(&self.who, &root, path.as_bytes())
            .unwrap();
    }

    fn rmdir(&self, path: &str) {
        let root = self.fs.root();
        self.fs.rmdir_at(&self.who, &root, path.as_bytes()).unwrap();
    }

    fn rename(&self, from: &str, to: &str, flags: RenameFlags) {
        let root = self.fs.root();
        let (from, to) = (from.as_bytes(), to.as_bytes());
        self.fs
            .rename_at(&self.who, &root, from, &root, to, flags)
            .unwrap();
    }

    fn mknod(&self, path: &str, kind: FileType, rdev: u64) {
        let root = self.fs.root();
        self.fs
            .mknod_at(&self.who, &root, path.as_bytes(), kind, 0o600, rdev)
            .unwrap();
    }

    pub(crate) fn xattr(&self, path: &str, name: &str, len: usize) {
        let value = pattern(len as u64, len);
        self.fs
            .setxattr(
                &self.who,
                &self.node(path),
                name.as_bytes(),
                &value,
                XattrSet::Any,
            )
            .unwrap();
    }

    fn fallocate(&self, path: &str, mode: Fallocate, offset: u64, len: u64) {
        let file = self.open(path);
        self.fs
            .fallocate(&self.who, &file, mode, offset, len)
            .unwrap();
    }

    fn set(&self, path: &str, set: &SetAttr) {
        self.fs
            .setattr(&self.who, &self.node(path), set, None)
            .unwrap();
    }

    /// Content, names, attributes of every kind.
    pub(crate) fn fill(&self) {
        self.mkdir("many");
        for number in 0..MANY {
            self.open(&format!("many/a-name-of-some-length-{number:05}"));
        }
        self.mkdir("dir");
        self.mkdir("dir/below");
        self.mkdir("void");
        self.write("small", 0, 1, 100);
        self.write("dir/small", 0, 2, 3000);
        self.write("dir/large", 0, 3, 20_000);
        self.write("dir/holes", 0, 4, 4096);
        self.write("dir/holes", 40_960, 5, 5000);
        self.fallocate("dir/holes", Fallocate::KEEP_SIZE, 65_536, 16_384);
        self.symlink("link", b"dir/large");
        self.symlink("long-link", &pattern(1, 900).map_zeros());
        self.link("small", "dir/hard");
        self.mknod("fifo", FileType::Fifo, 0);
        self.mknod("socket", FileType::Socket, 0);
        self.mknod("tty", FileType::CharDevice, 0x0501);
        self.mknod("disk", FileType::BlockDevice, 0x0012_3456);
        self.xattr("small", "user.short", 10);
        self.xattr("small", "user.other", 0);
        self.xattr("dir", "user.long", 9000);
        self.xattr("dir/large", "trusted.middle", 2000);
        for number in 0..20 {
            self.xattr("dir/below", &format!("user.number-{number}"), number);
        }
        self.set(
            "dir/small",
            &SetAttr {
                perm: Some(0o4711),
                uid: Some(1000),
                gid: Some(100_000),
                mtime: Some(SetTime::At(Time(-1_234_567_890_123_456_789))),
                ..SetAttr::default()
            },
        );
        // The greatest cookie of a directory, removed.
        self.open("dir/last");
        self.unlink("dir/last");
    }

    /// Files with flags and a project.
    pub(crate) const FLAGGED: [(&'static str, FileFlags, u32); 3] = [
        ("dir/small", FileFlags::NODUMP.union(FileFlags::NOATIME), 0),
        ("dir", FileFlags::PROJECT_INHERIT, u32::MAX),
        ("dir/large", FileFlags::IMMUTABLE, 7),
    ];
    /// Their access time.
    pub(crate) const LATE: Time = Time::new(15_000_000_000, 1);

    /// Sets them.
    pub(crate) fn flag(&self) {
        for (path, flags, project) in Self::FLAGGED {
            self.set(
                path,
                &SetAttr {
                    atime: Some(SetTime::At(Self::LATE)),
                    ..SetAttr::default()
                },
            );
            self.fs
                .set_flags(&self.who, &self.node(path), Some(flags), Some(project))
                .unwrap();
        }
    }

    /// Every kind of change, for the journal only.
    pub(crate) fn change(&self) {
        self.mkdir("later");
        self.write("later/new", 0, 11, 50);
        self.write("later/larger", 0, 12, 9000);
        self.write("dir/large", 4000, 13, 300);
        self.symlink("later/link", b"../small");
        self.link("dir/small", "later/hard");
        self.rename("small", "later/moved", RenameFlags::empty());
        self.rename("fifo", "socket", RenameFlags::empty());
        self.rename("link", "dir/below", RenameFlags::EXCHANGE);
        self.unlink("disk");
        self.rmdir("void");
        self.write("later/cut", 0, 14, 30_000);
        let size = Some(10_000);
        self.set(
            "later/cut",
            &SetAttr {
                size,
                ..SetAttr::default()
            },
        );
        let keep = Fallocate::KEEP_SIZE;
        self.fallocate("later/cut", Fallocate::PUNCH_HOLE | keep, 100, 5000);
        self.fallocate("later/cut", Fallocate::ZERO_RANGE, 8192, 1000);
        self.fallocate("later/cut", Fallocate::empty(), 16_384, 8192);
        self.write("later/shift", 0, 15, 20_480);
        self.fallocate("later/shift", Fallocate::COLLAPSE_RANGE, 4096, 4096);
        self.fallocate("later/shift", Fallocate::INSERT_RANGE, 8192, 8192);
        self.xattr("later/new", "user.new", 30);
        self.xattr("later/new", "user.long", 5000);
        self.fs
            .removexattr(&self.who, &self.node("dir/large"), b"trusted.middle")
            .unwrap();
        self.set(
            "tty",
            &SetAttr {
                perm: Some(0o666),
                mtime: Some(SetTime::At(Time(5))),
                ..SetAttr::default()
            },
        );
    }
}

/// Targets have no zero bytes.
trait MapZeros {
    fn map_zeros(self) -> Self;
}

impl MapZeros for Vec<u8> {
    fn map_zeros(mut self) -> Self {
        self.iter_mut().for_each(|byte| *byte = (*byte).max(1));
        self
    }
}

/// Options without commits by timer.
pub(crate) const OPTIONS: OpenOptions = OpenOptions {
    cache: 1 << 20,
    commit_every: None,
    ..OpenOptions::DEFAULT
};

/// Opens the volume on a device.
pub(crate) fn open(
    device: &Arc<dyn BlockDevice>,
) -> Result<(Arc<VolumeStore>, FileSystem), String> {
    open_as(device, &OPTIONS)
}

fn open_as(
    device: &Arc<dyn BlockDevice>,
    options: &OpenOptions,
) -> Result<(Arc<VolumeStore>, FileSystem), String> {
    let store = VolumeStore::open(Arc::clone(device), options);
    let store = Arc::new(store.map_err(|error| error.to_string())?);
    let fs = FileSystem::new(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    Ok((store, fs.map_err(|error| error.to_string())?))
}

/// Formats a device of [`SIZE`] bytes with flex groups of this size.
fn formatted(bundle: Option<u64>) -> Arc<MemoryDevice> {
    let memory = Arc::new(MemoryDevice::new(SIZE));
    let options = FormatOptions {
        label: Label::new("golden").unwrap(),
        journal: Some(512 << 10),
        group_blocks: Some(300),
        bundle,
        seed: Some(7),
        ..FormatOptions::default()
    };
    format(&(memory.clone() as Arc<dyn BlockDevice>), &options).unwrap();
    memory
}

/// The filled volume, closed.
pub(crate) fn closed() -> Arc<MemoryDevice> {
    filled(formatted(None))
}

/// The same without flex groups.
pub(crate) fn unbundled() -> Arc<MemoryDevice> {
    filled(formatted(Some(1)))
}

fn filled(memory: Arc<MemoryDevice>) -> Arc<MemoryDevice> {
    let (store, fs) = open(&(memory.clone() as _)).unwrap();
    let hand = Hand::new(&fs);
    hand.fill();
    hand.flag();
    fs.close().unwrap();
    store.close().unwrap();
    memory
}

/// The filled volume, changed further and dropped: its journal is full of changes, and there are
/// orphans, one in the trees and one in the journal.
pub(crate) fn crashed() -> Arc<MemoryDevice> {
    let memory = formatted(None);
    let (store, fs) = open(&(memory.clone() as _)).unwrap();
    let hand = Hand::new(&fs);
    hand.fill();
    hand.write("orphan", 0, 21, 6000);
    let first = hand.open("orphan");
    hand.unlink("orphan");
    fs.sync().unwrap();
    store.checkpoint().unwrap();
    hand.change();
    hand.write("orphan", 0, 22, 60);
    let second = hand.open("orphan");
    hand.unlink("orphan");
    hand.flag();
    fs.sync().unwrap();
    // What happens from here on does not reach the copy.
    let left = Arc::new(MemoryDevice::from_image("crashed", memory.image()));
    drop((first, second));
    left
}

/// The same with inode numbers beyond the first mark: the journal has further marks.
pub(crate) fn crashed_beyond_marks() -> Arc<MemoryDevice> {
    let left = crashed();
    let options = OpenOptions {
        numbers_reserved: 64,
        ..OPTIONS
    };
    let device: Arc<dyn BlockDevice> = left.clone();
    let (store, fs) = open_as(&device, &options).unwrap();
    let hand = Hand::new(&fs);
    for number in 0..200 {
        hand.mknod(&format!("temporary {number}"), FileType::Regular, 0);
    }
    for number in 0..200 {
        hand.unlink(&format!("temporary {number}"));
    }
    fs.sync().unwrap();
    let image = left.image();
    drop((fs, store));
    Arc::new(MemoryDevice::from_image("crashed", image))
}
