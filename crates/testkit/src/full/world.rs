//! A file system that is full, what it should hold, and how it comes and goes.

use super::model::{Kind, Model, Thing};
use super::{RESERVE, Summary};
use crate::rng::Rng;
use holdfast_core::{FileSystem, MemoryLimits, Node, OpenFile, Options};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::{Caller, Errno, OpenFlags, SetAttr};
use holdfast_volume::{CheckOptions, FormatOptions, OpenOptions, VolumeStore, check, format};
use std::sync::Arc;

/// The file that takes what is left.
const FILLER: &str = "filler";
/// Free blocks that are left at most.
const FREE_MAX: u64 = 100;

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) model: Model,
    pub(super) fs: FileSystem,
    volume: Option<(Arc<dyn BlockDevice>, Arc<VolumeStore>)>,
    pub(super) number: u64,
}

fn told(what: &str) -> impl Fn(Errno) -> String + '_ {
    move |error| format!("{what}: {error}")
}

fn open(device: &Arc<dyn BlockDevice>) -> Result<(FileSystem, Arc<VolumeStore>), String> {
    let options = OpenOptions {
        // Nothing happens that does not follow from the seed.
        commit_every: None,
        ..OpenOptions::default()
    };
    let store = VolumeStore::open(Arc::clone(device), &options);
    let store = Arc::new(store.map_err(|error| format!("opening: {error}"))?);
    let fs = FileSystem::new(store.clone(), Options::default()).map_err(told("opening"))?;
    Ok((fs, store))
}

impl World {
    pub(super) fn on_volume(rng: Rng, bytes: u64) -> Result<Self, String> {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(bytes));
        let options = FormatOptions {
            seed: Some(bytes),
            ..FormatOptions::default()
        };
        format(&device, &options).map_err(|error| error.to_string())?;
        let (fs, store) = open(&device)?;
        Self::new(rng, fs, Some((device, store)))
    }

    pub(super) fn in_memory(rng: Rng, bytes: u64) -> Result<Self, String> {
        let limits = MemoryLimits {
            bytes: Some(bytes),
            inodes: None,
        };
        let fs = FileSystem::memory(limits, Options::default());
        Self::new(rng, fs, None)
    }

    fn new(
        rng: Rng,
        fs: FileSystem,
        volume: Option<(Arc<dyn BlockDevice>, Arc<VolumeStore>)>,
    ) -> Result<Self, String> {
        let set = SetAttr {
            perm: Some(0o777),
            ..SetAttr::default()
        };
        let root = fs.root();
        fs.setattr(&Caller::root(), &root, &set, None)
            .map_err(told("chmod of the root"))?;
        Ok(Self {
            rng,
            model: Model::default(),
            fs,
            volume,
            number: 0,
        })
    }

    /// Does so many operations, and removes all in the end.
    pub(super) fn session(&mut self, operations: u64, summary: &mut Summary) -> Result<(), String> {
        for number in 0..operations {
            if number % 100 == 0 {
                self.fill(number % 1000 == 0)?;
            }
            self.number = number;
            let done = self.operation();
            let refused = done.map_err(|error| format!("operation {number}: {error}"))?;
            summary.tried += 1;
            summary.refused += u64::from(refused);
            if self.rng.one_in(60) {
                self.sync()?;
            }
            if self.rng.one_in(800) {
                self.reopen()
                    .map_err(|error| format!("after {number}: {error}"))?;
                summary.reopened += 1;
            } else if self.volume.is_some() && self.rng.one_in(800) {
                self.kill()
                    .map_err(|error| format!("after {number}: {error}"))?;
                summary.killed += 1;
            }
        }
        self.reopen()?;
        summary.reopened += 1;
        self.empty()
    }

    pub(super) fn who(&mut self) -> Caller {
        match self.rng.one_in(3) {
            true => Caller::root(),
            false => Caller::user(1000, 1000),
        }
    }

    pub(super) fn free(&self) -> Result<u64, String> {
        Ok(self.fs.statfs().map_err(told("statfs"))?.blocks_available)
    }

    pub(super) fn sync(&mut self) -> Result<(), String> {
        self.fs.sync().map_err(told("sync"))?;
        self.model.synced();
        Ok(())
    }

    /// An operation that may need so many blocks for pages was refused: is there as little room as
    /// that?
    pub(super) fn check_refusal(&mut self, what: &str, pages: u64) -> Result<(), String> {
        self.sync()?;
        if let Some((_, store)) = &self.volume {
            store.checkpoint().map_err(|error| error.to_string())?;
        }
        let free = self.free()?;
        let most = match self.volume {
            Some(_) => pages + RESERVE,
            None => pages + 18,
        };
        match free > most {
            true => Err(format!(
                "{what}: refused with {free} blocks free, {pages} wanted"
            )),
            false => Ok(()),
        }
    }

    /// Takes what is left, but for some blocks. `anew`: gives some back first.
    fn fill(&mut self, anew: bool) -> Result<(), String> {
        let file = self
            .file(FILLER, &Caller::root())
            .map_err(told("the filler"))?;
        let mut size = self.fs.getattr(file.node()).size;
        let left = self.rng.below(FREE_MAX + 1);
        if anew && size > 0 {
            size = size / 4096 / 2 * 4096;
            self.cut(&file, size)?;
        }
        self.sync()?;
        while self.free()? > left {
            let blocks = (self.free()? - left).min(256);
            let chunk = vec![0xf1; blocks as usize * 4096];
            match self.fs.write(&Caller::root(), &file, size, &chunk) {
                Ok(written) => size += written as u64,
                Err(Errno::ENOSPC) => break,
                Err(error) => return Err(format!("filling: {error}")),
            }
        }
        Ok(())
    }

    fn cut(&self, file: &OpenFile, size: u64) -> Result<(), String> {
        let set = SetAttr {
            size: Some(size),
            ..SetAttr::default()
        };
        let cut = self
            .fs
            .setattr(&Caller::root(), file.node(), &set, Some(file));
        cut.map(drop).map_err(told("cutting the filler"))
    }

    pub(super) fn file(&self, name: &str, who: &Caller) -> Result<OpenFile, Errno> {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let root = self.fs.root();
        let who = who.clone().with_umask(0);
        self.fs.open_at(&who, &root, name.as_bytes(), flags, 0o666)
    }

    pub(super) fn node(&self, name: &str) -> Result<Node, Errno> {
        let root = self.fs.root();
        self.fs.lookup(&Caller::root(), &root, name.as_bytes())
    }

    fn blocks(&self) -> Result<Vec<(String, u64)>, String> {
        let names = self.model.things.iter();
        let files = names.filter(|(_, thing)| thing.kind == Kind::File && !thing.small);
        files
            .map(|(name, _)| {
                let node = self.node(name).map_err(told(name))?;
                Ok((name.clone(), self.fs.getattr(&node).blocks))
            })
            .collect()
    }

    /// Closed, found sound, and opened again: all is as it was.
    fn reopen(&mut self) -> Result<(), String> {
        let Some((device, store)) = &self.volume else {
            return self.compare();
        };
        let device = Arc::clone(device);
        let blocks = self.blocks()?;
        self.fs.close().map_err(told("closing"))?;
        // What was replaced is free again with the second.
        for _ in 0..2 {
            store.checkpoint().map_err(|error| error.to_string())?;
        }
        let free = self.free()?;
        store.close().map_err(|error| format!("closing: {error}"))?;
        self.leave()?;
        let report = check(&device, &CheckOptions::default(), &|_, _, _| {});
        if !report.is_clean() {
            return Err(format!("unsound: {:?}", report.findings));
        }
        self.enter(device)?;
        self.model.synced();
        self.compare()?;
        if self.blocks()? != blocks {
            return Err(format!(
                "blocks of files: {blocks:?}, then {:?}",
                self.blocks()?
            ));
        }
        let now = self.free()?;
        if now.abs_diff(free) > 64 {
            return Err(format!("{free} blocks free, {now} once it is opened again"));
        }
        Ok(())
    }

    /// Dropped: what was synced is there, what came since is there or not.
    fn kill(&mut self) -> Result<(), String> {
        let Some((device, _)) = &self.volume else {
            return self.compare();
        };
        let device = Arc::clone(device);
        self.leave()?;
        self.enter(device)?;
        self.accept_the_rest()?;
        self.sync()?;
        self.compare()
    }

    /// Lets go of the store, and of what was above it.
    fn leave(&mut self) -> Result<(), String> {
        self.volume = None;
        self.fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        Ok(())
    }

    fn enter(&mut self, device: Arc<dyn BlockDevice>) -> Result<(), String> {
        let (fs, store) = open(&device)?;
        self.fs = fs;
        self.volume = Some((device, store));
        Ok(())
    }

    /// What was touched since the last sync is taken as it is found.
    fn accept_the_rest(&mut self) -> Result<(), String> {
        let touched = self.model.things.iter();
        let touched = touched.filter(|(_, thing)| thing.touched);
        let mut names: Vec<String> = touched.map(|(name, _)| name.clone()).collect();
        names.append(&mut self.model.gone);
        for name in names {
            self.model.things.remove(&name);
            match self.node(&name) {
                Err(Errno::ENOENT) => {}
                Err(error) => return Err(format!("{name}: {error}")),
                Ok(_) => {
                    let thing = self.found(&name)?;
                    self.model.things.insert(name, thing);
                }
            }
        }
        Ok(())
    }

    /// A name as the file system has it.
    fn found(&self, name: &str) -> Result<Thing, String> {
        let (fs, who) = (&self.fs, Caller::root());
        let node = self.node(name).map_err(told(name))?;
        let attributes = fs.getattr(&node);
        // Its former state is unknown.
        let mut thing = Thing {
            small: true,
            ..Thing::default()
        };
        thing.kind = match node.kind() {
            holdfast_types::FileType::Directory => Kind::Directory,
            holdfast_types::FileType::Symlink => Kind::Symlink,
            _ if attributes.nlink > 1 => Kind::Link,
            _ => Kind::File,
        };
        match thing.kind {
            Kind::Directory => {}
            Kind::Symlink => thing.bytes = fs.readlink(&node).map_err(told(name))?.into(),
            Kind::File | Kind::Link => {
                let file = fs
                    .open(&who, &node, OpenFlags::empty())
                    .map_err(told(name))?;
                thing.bytes = vec![0; attributes.size as usize];
                let mut done = 0;
                while done < thing.bytes.len() {
                    let read = fs.read(&file, done as u64, &mut thing.bytes[done..]);
                    match read.map_err(told(name))? {
                        0 => return Err(format!("{name} ends at {done}")),
                        read => done += read,
                    }
                }
            }
        }
        let names = fs.listxattr(&who, &node).map_err(told(name))?;
        for key in names.split(|byte| *byte == 0).filter(|key| !key.is_empty()) {
            let value = fs.getxattr(&who, &node, key).map_err(told(name))?;
            let key = String::from_utf8_lossy(key).into_owned();
            thing.values.insert(key, value.into());
        }
        Ok(thing)
    }

    /// All is as it should be.
    fn compare(&self) -> Result<(), String> {
        for (name, thing) in &self.model.things {
            let found = self.found(name)?;
            if found.bytes != thing.bytes {
                let (len, expected) = (found.bytes.len(), thing.bytes.len());
                let both = found.bytes.iter().zip(&thing.bytes);
                let at = both.take_while(|(one, other)| one == other).count();
                return Err(format!(
                    "{name}: {len} bytes, {expected} expected, the first {at} agree"
                ));
            }
            if found.values != thing.values
                || (found.kind == Kind::Directory) != (thing.kind == Kind::Directory)
            {
                return Err(format!("{name} has other attributes"));
            }
        }
        Ok(())
    }

    /// Removes everything, as an ordinary user where the directory permits it.
    fn empty(&mut self) -> Result<(), String> {
        self.fill(false)?;
        let names: Vec<String> = self.model.things.keys().cloned().collect();
        for name in names {
            self.remove(&name)?;
        }
        let root = self.fs.root();
        let filler = FILLER.as_bytes();
        self.fs
            .unlink(&Caller::root(), &root, filler)
            .map_err(told("the filler"))?;
        self.sync()?;
        if self.volume.is_none() {
            let space = self.fs.statfs().map_err(told("statfs"))?;
            let used = space.blocks - space.blocks_available;
            if used > 0 {
                return Err(format!("{used} pages are used by nothing"));
            }
        }
        Ok(())
    }
}
