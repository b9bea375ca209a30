//! The operations, each with its preparation.

use holdfast_core::types::{Caller, OpenFlags, RenameFlags, Result, SetAttr};
use holdfast_core::{FileSystem, MemoryLimits, Node, OpenFile, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_volume::{FormatOptions, OpenOptions, VolumeStore, format};
use std::sync::Arc;

/// Operations that every preparation suffices for.
pub(crate) const MOST: usize = 4_050;

/// Names of the directory that is listed.
const LISTED: usize = 1_000;

/// Bytes of the volume, which lies in memory.
const VOLUME: u64 = 256 << 20;
const PAGE: usize = 4096;
/// Pages of the file that is read and written, all of which are in the cache.
const PAGES: usize = 64;
/// An ordinary user: no permission check is skipped because of capabilities.
const USER: u32 = 1000;

/// Carries out the operation once; the argument is its number, below [`MOST`].
pub(crate) type Operation<'a> = Box<dyn FnMut(usize) -> Result<()> + 'a>;
pub(crate) type Prepare = for<'a> fn(&'a Place) -> Result<Operation<'a>>;

/// All operations, in the order of the table.
pub(crate) const OPERATIONS: &[(&str, Prepare)] = &[
    ("create", create),
    ("unlink", unlink),
    ("lookup", lookup),
    ("stat", stat),
    ("open", open),
    ("read-1", |place| read(place, 1)),
    ("read-4k", |place| read(place, PAGE)),
    ("write-4k", write),
    ("rename", rename),
    ("readdir-1000", readdir),
    ("lookup-cold", lookup_cold),
    ("chmod-cold", chmod_cold),
    ("fsync", fsync),
];

/// A new file system, and a directory in it.
pub(crate) struct Place {
    fs: FileSystem,
    caller: Caller,
    dir: Node,
}

impl Place {
    /// In memory alone.
    ///
    /// # Errors
    /// What the calls answer.
    pub(crate) fn in_memory() -> Result<Self> {
        Self::on(FileSystem::memory(MemoryLimits::default(), options()))
    }

    /// On a volume on a device in memory, which commits when `fsync` asks for it.
    ///
    /// # Errors
    /// What the calls answer.
    pub(crate) fn on_a_volume() -> Result<Self> {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(VOLUME));
        format(&device, &FormatOptions::default()).map_err(|error| error.errno())?;
        let how = OpenOptions {
            commit_every: None,
            ..OpenOptions::default()
        };
        let store = VolumeStore::open(device, &how).map_err(|error| error.errno())?;
        Self::on(FileSystem::new(Arc::new(store), options())?)
    }

    fn on(fs: FileSystem) -> Result<Self> {
        let caller = Caller::user(USER, USER);
        let dir = fs.mkdir(&caller, &fs.root(), b"directory", 0o755)?;
        Ok(Self { fs, caller, dir })
    }

    fn create(&self, name: &[u8]) -> Result<OpenFile> {
        let flags = OpenFlags::READ_WRITE | OpenFlags::EXCLUSIVE;
        self.fs.create(&self.caller, &self.dir, name, 0o644, flags)
    }

    fn lookup(&self, name: &[u8]) -> Result<Node> {
        self.fs.lookup(&self.caller, &self.dir, name)
    }

    /// Creates [`MOST`] empty files.
    fn files(&self) -> Result<Vec<Vec<u8>>> {
        let names = names("file");
        for name in &names {
            self.create(name)?;
        }
        Ok(names)
    }

    /// Creates [`MOST`] empty files, commits them and drops every cached inode and name.
    fn cold_files(&self) -> Result<Vec<Vec<u8>>> {
        let names = self.files()?;
        self.fs.sync()?;
        self.fs.drop_caches()?;
        Ok(names)
    }

    /// A file of [`PAGES`] pages.
    fn content(&self) -> Result<OpenFile> {
        let file = self.create(b"content")?;
        self.fs
            .write(&self.caller, &file, 0, &vec![1; PAGES * PAGE])?;
        Ok(file)
    }
}

fn options() -> Options {
    Options {
        root_uid: Some(USER),
        root_gid: Some(USER),
        ..Options::default()
    }
}

/// Names of 24 bytes, as most are in practice.
fn names(what: &str) -> Vec<Vec<u8>> {
    let name = |index| format!("{what:.<16}{index:08}").into_bytes();
    (0..MOST).map(name).collect()
}

fn create(place: &Place) -> Result<Operation<'_>> {
    let names = names("file");
    Ok(Box::new(move |index| place.create(&names[index]).map(drop)))
}

fn unlink(place: &Place) -> Result<Operation<'_>> {
    let names = place.files()?;
    Ok(Box::new(move |index| {
        place.fs.unlink(&place.caller, &place.dir, &names[index])
    }))
}

fn lookup(place: &Place) -> Result<Operation<'_>> {
    let names = place.files()?;
    Ok(Box::new(move |index| place.lookup(&names[index]).map(drop)))
}

fn stat(place: &Place) -> Result<Operation<'_>> {
    let root = place.fs.root();
    let names = place.files()?;
    let path = |name: &Vec<u8>| [b"directory/".as_slice(), name].concat();
    let paths: Vec<Vec<u8>> = names.iter().map(path).collect();
    Ok(Box::new(move |index| {
        let found = place.fs.stat_at(&place.caller, &root, &paths[index], true);
        found.map(drop)
    }))
}

fn open(place: &Place) -> Result<Operation<'_>> {
    let names = place.files()?;
    let nodes = names.iter().map(|name| place.lookup(name));
    let nodes: Vec<Node> = nodes.collect::<Result<_>>()?;
    Ok(Box::new(move |index| {
        let flags = OpenFlags::empty();
        place.fs.open(&place.caller, &nodes[index], flags).map(drop)
    }))
}

fn read(place: &Place, len: usize) -> Result<Operation<'_>> {
    let file = place.content()?;
    let mut buffer = vec![0; len];
    Ok(Box::new(move |index| {
        place.fs.read(&file, offset(index), &mut buffer).map(drop)
    }))
}

fn write(place: &Place) -> Result<Operation<'_>> {
    let file = place.content()?;
    Ok(Box::new(move |index| {
        let data = [7; PAGE];
        let written = place.fs.write(&place.caller, &file, offset(index), &data);
        written.map(drop)
    }))
}

fn rename(place: &Place) -> Result<Operation<'_>> {
    let (from, to) = (place.files()?, names("renamed"));
    Ok(Box::new(move |index| {
        let (from, to, flags) = (&from[index], &to[index], RenameFlags::empty());
        let dir = &place.dir;
        place.fs.rename(&place.caller, dir, from, dir, to, flags)
    }))
}

/// Lists [`LISTED`] names.
fn readdir(place: &Place) -> Result<Operation<'_>> {
    for name in &names("file")[..LISTED] {
        place.create(name)?;
    }
    Ok(Box::new(move |_| {
        let dir = place
            .fs
            .open(&place.caller, &place.dir, OpenFlags::DIRECTORY)?;
        place.fs.read_dir(&dir, 0, &mut |_| true)
    }))
}

fn lookup_cold(place: &Place) -> Result<Operation<'_>> {
    let names = place.cold_files()?;
    Ok(Box::new(move |index| place.lookup(&names[index]).map(drop)))
}

/// Looks a name up and changes the permissions of its inode.
fn chmod_cold(place: &Place) -> Result<Operation<'_>> {
    let names = place.cold_files()?;
    Ok(Box::new(move |index| {
        let node = place.lookup(&names[index])?;
        let perm = Some(0o600);
        let set = SetAttr {
            perm,
            ..SetAttr::default()
        };
        place.fs.setattr(&place.caller, &node, &set, None).map(drop)
    }))
}

/// Writes 100 bytes to a small file and makes them durable.
fn fsync(place: &Place) -> Result<Operation<'_>> {
    let names = place.files()?;
    let flags = OpenFlags::READ_WRITE;
    Ok(Box::new(move |index| {
        let node = place.lookup(&names[index])?;
        let file = place.fs.open(&place.caller, &node, flags)?;
        place.fs.write(&place.caller, &file, 0, &[7; 100])?;
        place.fs.fsync(&file, false)
    }))
}

/// Where the operation of this number reads or writes.
fn offset(index: usize) -> u64 {
    (index % PAGES * PAGE) as u64
}
