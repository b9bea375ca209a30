//! A volume with a file system over it, and what is done to it.

use std::sync::Arc;

use holdfast_core::store::{Behind, WalkInodes};
use holdfast_core::{FileSystem, OpenFile, Options, Store};
use holdfast_device::{BlockDevice, Image, MemoryDevice};
use holdfast_types::{
    Caller, Errno, Fallocate, FileType, Ino, OpenFlags, RenameFlags, Result, SetAttr, XattrSet,
};
use holdfast_volume::{BLOCK, FormatOptions, OpenOptions, VolumeStore, format};

use super::step::Step;
use super::tree::Tree;
use crate::rng::pattern;

const PAGE: u64 = BLOCK as u64;

/// Bytes of a volume: small, so that states are made quickly.
const SIZE: u64 = 4 << 20;

/// Bytes that it grows to at most: larger ones set more aside, which is not in use when all is
/// gone.
const SIZE_MAX: u64 = 6 << 20;
/// Blocks of a group: there are several, and more when it grows.
const GROUP_BLOCKS: u64 = 300;

/// An open volume.
pub(super) struct Subject {
    device: Arc<dyn BlockDevice>,
    store: Arc<VolumeStore>,
    fs: FileSystem,
    held: Vec<OpenFile>,
    who: Caller,
}

/// The cache of the host, until a crash of it.
pub(super) const CACHE: Option<u64> = Some(1);

/// How volumes are opened here: nothing happens by itself.
pub(super) const OPTIONS: OpenOptions = OpenOptions {
    cache: 1 << 20,
    commit_every: None,
    // Most sequences need a mark, and some several.
    numbers_reserved: 24,
    changes: None,
};

/// How a journal is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replay {
    /// Into memory.
    Whole,
    /// Into the trees, wherever that can be in its midst.
    InParts,
}

impl Replay {
    /// The one or the other.
    pub(super) fn of(number: u64) -> Self {
        match number.is_multiple_of(2) {
            true => Self::Whole,
            false => Self::InParts,
        }
    }
}

impl Subject {
    /// Opens the volume on a device.
    pub(super) fn open(device: Arc<dyn BlockDevice>) -> std::result::Result<Self, String> {
        Self::replayed(device, Replay::Whole)
    }

    /// Opens the volume on a device, its journal replayed like this.
    pub(super) fn replayed(
        device: Arc<dyn BlockDevice>,
        replay: Replay,
    ) -> std::result::Result<Self, String> {
        let options = OpenOptions {
            changes: (replay == Replay::InParts).then_some(0),
            ..OPTIONS
        };
        let store = VolumeStore::open(Arc::clone(&device), &options);
        let store = Arc::new(store.map_err(|error| format!("does not open: {error}"))?);
        let fs = FileSystem::new(store.clone(), Options::default());
        let fs = fs.map_err(|error| format!("no file system: {error}"))?;
        let held = Vec::new();
        let who = Caller::root().with_umask(0);
        Ok(Self {
            device,
            store,
            fs,
            held,
            who,
        })
    }

    /// Everything that it shows.
    pub(super) fn tree(&self) -> std::result::Result<Tree, String> {
        let looked = Tree::of(&self.fs).and_then(|mut tree| {
            tree.look_at_open(&self.fs, &self.held)?;
            Ok(tree)
        });
        looked.map_err(|error| format!("cannot be read: {error}"))
    }

    /// Do records say of all files the space that the store has of them, run by run?
    ///
    /// # Errors
    /// Of which not, or what cannot be read.
    pub(super) fn say_their_space(&self) -> std::result::Result<(), String> {
        let unread = |error: Errno| format!("space cannot be read: {error}");
        let mut run = Vec::new();
        WalkInodes::walk(&*self.store, Ino(0), 1 << 20, &mut run).map_err(unread)?;
        for record in run.iter().filter(|record| record.kind == FileType::Regular) {
            let (mut at, mut counted) = (0, 0);
            while let Some(run) = self.store.next_space(record.ino, at).map_err(unread)? {
                at = run.start + run.len;
                counted += at.div_ceil(PAGE) - run.start / PAGE;
            }
            let said = record.space.pages(record.size);
            if said != Some(counted) {
                let (ino, size) = (record.ino, record.size);
                return Err(format!(
                    "inode {ino} of {size} bytes says {said:?} pages, and has {counted}"
                ));
            }
        }
        Ok(())
    }

    /// The highest number that an inode has or had.
    pub(super) fn highest(&self) -> Result<Ino> {
        Behind::last_ino(&*self.store)
    }

    /// Pages in use.
    pub(super) fn used(&self) -> Result<u64> {
        let space = self.fs.statfs()?;
        Ok(space.blocks - space.blocks_available)
    }

    /// Closes the volume cleanly; the device has it all then.
    pub(super) fn close(self) -> std::result::Result<Arc<dyn BlockDevice>, String> {
        drop(self.held);
        let closed = self.fs.close().and(Ok(self.store.close()));
        match closed {
            Ok(Ok(())) => Ok(self.device),
            Ok(Err(error)) => Err(format!("does not close: {error}")),
            Err(error) => Err(format!("does not close: {error}")),
        }
    }

    /// Does a step. `fill`: what it writes follows from it. `Ok(false)`: it was refused.
    ///
    /// # Errors
    /// What no step may answer.
    pub(super) fn step(&mut self, step: &Step, fill: u64) -> std::result::Result<bool, String> {
        if *step == Step::Reopen {
            self.reopen()?;
            return Ok(true);
        }
        match self.perform(step, fill) {
            Ok(()) => Ok(true),
            Err(error @ (Errno::EIO | Errno::EROFS | Errno::EUCLEAN)) => {
                Err(format!("{step:?} answers {error}"))
            }
            Err(error)
                if matches!(
                    step,
                    Step::WriteBehind | Step::Sync | Step::Checkpoint | Step::Trim
                ) =>
            {
                Err(format!("{step:?} answers {error}"))
            }
            Err(_) => Ok(false),
        }
    }

    fn reopen(&mut self) -> std::result::Result<(), String> {
        self.held.clear();
        self.fs
            .close()
            .map_err(|error| format!("does not sync: {error}"))?;
        self.store
            .close()
            .map_err(|error| format!("does not close: {error}"))?;
        *self = Self::open(Arc::clone(&self.device))?;
        Ok(())
    }

    fn file(&self, path: &str, flags: OpenFlags) -> Result<OpenFile> {
        let flags = flags | OpenFlags::READ_WRITE | OpenFlags::NOFOLLOW;
        let root = self.fs.root();
        self.fs
            .open_at(&self.who, &root, path.as_bytes(), flags, 0o644)
    }

    /// Does a step other than opening again.
    ///
    /// # Errors
    /// What the file system answers.
    pub(super) fn perform(&mut self, step: &Step, fill: u64) -> Result<()> {
        let (fs, who, root) = (&self.fs, &self.who, &self.fs.root());
        match *step {
            Step::Create(path) => drop(self.file(path, OpenFlags::CREATE)?),
            Step::Mkdir(path) => drop(fs.mkdir_at(who, root, path.as_bytes(), 0o755)?),
            Step::Write(path, offset, len) => {
                let file = self.file(path, OpenFlags::CREATE)?;
                fs.write(who, &file, offset, &pattern(fill, len))?;
            }
            Step::Append(path, len) => {
                let file = self.file(path, OpenFlags::empty())?;
                fs.append(who, &file, &pattern(fill, len))?;
            }
            Step::Rename(from, to) => {
                fs.rename_at(
                    who,
                    root,
                    from.as_bytes(),
                    root,
                    to.as_bytes(),
                    RenameFlags::empty(),
                )?;
            }
            Step::Exchange(from, to) => {
                let flags = RenameFlags::EXCHANGE;
                fs.rename_at(who, root, from.as_bytes(), root, to.as_bytes(), flags)?;
            }
            Step::Link(from, to) => {
                let node = fs.resolve(who, root, from.as_bytes(), false)?;
                fs.link_at(who, &node, root, to.as_bytes())?;
            }
            Step::Unlink(path) => fs.unlink_at(who, root, path.as_bytes())?,
            Step::Rmdir(path) => fs.rmdir_at(who, root, path.as_bytes())?,
            Step::Symlink(path) => {
                drop(fs.symlink_at(who, root, path.as_bytes(), b"some/where")?);
            }
            Step::Hold(path) => {
                let file = self.file(path, OpenFlags::empty())?;
                self.held.push(file);
            }
            Step::WriteHeld(offset, len) => {
                let file = self.held.first().ok_or(Errno::EBADF)?;
                fs.write(who, file, offset, &pattern(fill, len))?;
            }
            Step::Close if self.held.is_empty() => return Err(Errno::EBADF),
            Step::Close => drop(self.held.remove(0)),
            Step::Fsync(path) => {
                let flags = OpenFlags::NOFOLLOW;
                let file = fs.open_at(who, root, path.as_bytes(), flags, 0)?;
                fs.fsync(&file, false)?;
            }
            Step::WriteBehind => {
                let written = self.store.write_behind();
                written.map_err(|error| error.errno())?;
            }
            Step::Sync => fs.sync()?,
            Step::Checkpoint => self.store.checkpoint().map_err(|error| error.errno())?,
            Step::Grow(blocks) => self.grow(blocks)?,
            Step::Trim => {
                let trimmed = self.store.trim(0..u64::MAX, 0);
                trimmed.map_err(|error| error.errno())?;
            }
            _ => return self.attributes(step, fill),
        }
        Ok(())
    }

    fn grow(&self, blocks: u64) -> Result<()> {
        let size = (self.store.info().superblock.blocks + blocks) * BLOCK as u64;
        if size > SIZE_MAX {
            return Err(Errno::EFBIG);
        }
        let grown = self.store.grow(size).map_err(|error| error.errno())?;
        assert_eq!(grown, size, "what it has is what it was told to have");
        Ok(())
    }

    fn attributes(&self, step: &Step, fill: u64) -> Result<()> {
        let (fs, who, root) = (&self.fs, &self.who, &self.fs.root());
        match *step {
            Step::SetXattr(path, len) => {
                let node = fs.resolve(who, root, path.as_bytes(), false)?;
                let value = pattern(fill, len);
                fs.setxattr(who, &node, b"user.test", &value, XattrSet::Any)?;
            }
            Step::RemoveXattr(path) => {
                let node = fs.resolve(who, root, path.as_bytes(), false)?;
                fs.removexattr(who, &node, b"user.test")?;
            }
            Step::Chmod(path, perm) => {
                let node = fs.resolve(who, root, path.as_bytes(), false)?;
                let perm = Some(perm);
                let set = SetAttr {
                    perm,
                    ..SetAttr::default()
                };
                fs.setattr(who, &node, &set, None)?;
            }
            Step::Chown(path, uid) => {
                let node = fs.resolve(who, root, path.as_bytes(), false)?;
                let uid = Some(uid);
                let set = SetAttr {
                    uid,
                    ..SetAttr::default()
                };
                fs.setattr(who, &node, &set, None)?;
            }
            Step::Copy(from, at, to, offset, len) => {
                let from = self.file(from, OpenFlags::empty())?;
                let to = self.file(to, OpenFlags::CREATE)?;
                fs.copy_file_range(who, &from, at, &to, offset, len)?;
            }
            _ => return self.resize(step),
        }
        Ok(())
    }

    fn resize(&self, step: &Step) -> Result<()> {
        let (path, mode, offset, len) = match *step {
            Step::Truncate(path, size) => {
                let set = SetAttr {
                    size: Some(size),
                    ..SetAttr::default()
                };
                let file = self.file(path, OpenFlags::empty())?;
                self.fs.setattr(&self.who, file.node(), &set, Some(&file))?;
                return Ok(());
            }
            Step::Punch(path, offset, len) => {
                let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
                (path, mode, offset, len)
            }
            Step::Zero(path, offset, len) => (path, Fallocate::ZERO_RANGE, offset, len),
            Step::ZeroKept(path, offset, len) => {
                let mode = Fallocate::ZERO_RANGE | Fallocate::KEEP_SIZE;
                (path, mode, offset, len)
            }
            Step::Allocate(path, offset, len) => (path, Fallocate::empty(), offset, len),
            Step::Reserve(path, offset, len) => (path, Fallocate::KEEP_SIZE, offset, len),
            Step::Collapse(path, offset, len) => (path, Fallocate::COLLAPSE_RANGE, offset, len),
            Step::Insert(path, offset, len) => (path, Fallocate::INSERT_RANGE, offset, len),
            _ => return Err(Errno::EINVAL),
        };
        let file = self.file(path, OpenFlags::empty())?;
        self.fs.fallocate(&self.who, &file, mode, offset, len)
    }

    /// Removes everything.
    pub(super) fn remove_all(&mut self) -> Result<()> {
        let root = self.fs.root();
        remove_within(&self.fs, &self.who, &root)
    }
}

fn remove_within(fs: &FileSystem, who: &Caller, dir: &holdfast_core::Node) -> Result<()> {
    let mut names: Vec<(Vec<u8>, bool)> = Vec::new();
    let listing = fs.open(who, dir, OpenFlags::NOATIME)?;
    fs.read_dir(&listing, 0, &mut |entry| {
        if entry.name != b"." && entry.name != b".." {
            names.push((entry.name.to_vec(), entry.kind.is_dir()));
        }
        true
    })?;
    drop(listing);
    for (name, is_dir) in names {
        if is_dir {
            let inner = fs.lookup(who, dir, &name)?;
            remove_within(fs, who, &inner)?;
            fs.rmdir_at(who, dir, &name)?;
        } else {
            fs.unlink_at(who, dir, &name)?;
        }
    }
    Ok(())
}

/// Volumes that sequences begin with.
#[derive(Clone, Debug)]
pub(super) struct Bases {
    /// With a tree: closed cleanly, and all of it in the journal.
    pub(super) images: [Image; 2],
    /// Pages that a volume has in use when there is nothing but the root.
    pub(super) empty: u64,
}

impl Bases {
    /// Makes them.
    pub(super) fn make(seed: u64) -> std::result::Result<Self, String> {
        let fresh = || {
            let memory = Arc::new(MemoryDevice::new(SIZE));
            let device: Arc<dyn BlockDevice> = memory.clone();
            let options = FormatOptions {
                journal: Some(512 << 10),
                group_blocks: Some(GROUP_BLOCKS),
                seed: Some(seed),
                ..FormatOptions::default()
            };
            format(&device, &options).map_err(|error| error.to_string())?;
            Ok::<_, String>((memory, Subject::open(device)?))
        };
        let (_, subject) = fresh()?;
        let device = subject.close()?;
        let empty = Subject::open(device)?.used().map_err(|e| e.to_string())?;
        let steps = [
            Step::Write("small", 0, 100),
            Step::Write("big", 0, 20_000),
            Step::Mkdir("dir"),
            Step::Write("dir/leaf", 0, 1000),
            Step::Write("dir/data", 0, 8192),
            Step::Mkdir("void"),
            Step::Symlink("link"),
            Step::Link("small", "hard"),
            Step::SetXattr("big", 9000),
            Step::Sync,
        ];
        let mut images = Vec::new();
        for is_clean in [true, false] {
            let (memory, mut subject) = fresh()?;
            for (step, fill) in steps.iter().zip(1..) {
                if !subject.step(step, fill)? {
                    return Err(format!("{step:?} was refused"));
                }
            }
            if is_clean {
                subject.close()?;
            } else {
                drop(subject);
            }
            images.push(memory.image());
        }
        let images = images.try_into().map_err(|_| "two of them")?;
        Ok(Self { images, empty })
    }
}
