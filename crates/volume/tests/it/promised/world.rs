//! A full volume, and what its files must contain and have space for.

use crate::stage::{assert_sound, formatted, opened};
use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::store::MemoryLimits;
use holdfast_core::{FileSystem, OpenFile, Options};
use holdfast_device::BlockDevice;
use holdfast_testkit::rng::Rng;
use holdfast_types::{Caller, Errno, Fallocate, OpenFlags, Result, SetAttr};
use holdfast_volume::{FormatOptions, VolumeStore};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const BLOCK: u64 = 4096;
/// Files that are operated on, and bytes of each.
const FILES: u64 = 6;
const SIZE_MAX: u64 = MIB;

#[derive(Default)]
struct Model {
    bytes: Vec<u8>,
    /// For each block: is it allocated?
    room: Vec<bool>,
}

impl Model {
    fn blocks(offset: u64, len: u64) -> std::ops::Range<usize> {
        (offset / BLOCK) as usize..(offset + len).div_ceil(BLOCK) as usize
    }

    fn take(&mut self, offset: u64, len: u64) {
        let blocks = Self::blocks(offset, len);
        self.room.resize(self.room.len().max(blocks.end), false);
        self.room[blocks].fill(true);
    }

    /// An inline file becomes a mapped one.
    fn leave_inode(&mut self) {
        let mut first = self.bytes.iter().take(BLOCK as usize);
        if first.any(|byte| *byte != 0) {
            self.take(0, 1);
        }
    }

    /// Forgets allocated blocks if there are none: the file may become inline again.
    fn tidy(&mut self) {
        if !self.room.contains(&true) {
            self.room.clear();
        }
    }

    fn has_room(&self, offset: u64, len: u64) -> bool {
        let blocks = self.room.get(Self::blocks(offset, len));
        blocks.is_some_and(|blocks| blocks.iter().all(|room| *room))
    }

    fn put(&mut self, offset: u64, data: &[u8]) {
        let end = offset as usize + data.len();
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[offset as usize..end].copy_from_slice(data);
        // An inline file has no space for more.
        if self.bytes.len() > 2048 || !self.room.is_empty() {
            self.take(offset, data.len() as u64);
            self.leave_inode();
        }
    }
}

pub(crate) struct World {
    device: Arc<dyn BlockDevice>,
    store: Option<Arc<VolumeStore>>,
    pub(crate) fs: FileSystem,
    who: Caller,
    rng: Rng,
    files: BTreeMap<String, Model>,
    /// Bytes of the file that fills the volume.
    filled: u64,
}

impl World {
    pub(crate) fn make(seed: u64, size: u64) -> Self {
        let options = FormatOptions {
            seed: Some(seed),
            journal: Some(512 << 10),
            ..FormatOptions::default()
        };
        let device = formatted(size, &options);
        let (store, fs) = opened(&device);
        Self {
            device,
            store: Some(store),
            fs,
            who: Caller::root(),
            rng: Rng::new(seed),
            files: BTreeMap::new(),
            filled: 0,
        }
    }

    /// Closes and reopens the volume.
    pub(crate) fn again(&mut self) {
        self.close();
        self.enter();
    }

    fn close(&self) {
        self.fs.close().unwrap();
        if let Some(store) = &self.store {
            store.close().unwrap();
        }
    }

    fn enter(&mut self) {
        let (store, fs) = opened(&self.device);
        (self.store, self.fs) = (Some(store), fs);
    }

    pub(crate) fn checkpoint(&self) {
        if let Some(store) = &self.store {
            store.checkpoint().unwrap();
        }
    }

    /// Drops and reopens the volume. Unsynced changes may be lost.
    pub(crate) fn kill(&mut self) {
        self.store = None;
        self.fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        self.enter();
    }

    pub(crate) fn open(&self, name: &str) -> Result<OpenFile> {
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let root = self.fs.root();
        self.fs
            .open_at(&self.who, &root, name.as_bytes(), flags, 0o600)
    }

    /// Takes everything that is left: blocks, and then space for records.
    pub(crate) fn fill(&mut self) {
        let file = match self.open("filler") {
            Err(Errno::ENOSPC) => return,
            file => file.unwrap(),
        };
        for size in [256 << 10, 4096, 1] {
            let data = vec![7; size];
            loop {
                match self.fs.write(&self.who, &file, self.filled, &data) {
                    Ok(written) => self.filled += written as u64,
                    Err(error) => break assert_eq!(error, Errno::ENOSPC),
                }
            }
            self.filled = self.filled.next_multiple_of(4096);
        }
    }

    pub(crate) fn allocate(
        &mut self,
        name: &str,
        mode: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        let file = self.open(name)?;
        println!("{name}: {mode:?}, {len} bytes at {offset}");
        self.fs.fallocate(&self.who, &file, mode, offset, len)?;
        let model = self.files.entry(name.to_owned()).or_default();
        let end = (offset + len) as usize;
        if mode.contains(Fallocate::PUNCH_HOLE) {
            let whole = offset.div_ceil(BLOCK) as usize..((offset + len) / BLOCK) as usize;
            let held = model.room.len();
            if whole.start < whole.end.min(held) {
                model.room[whole.start..whole.end.min(held)].fill(false);
            }
            model.tidy();
        } else {
            model.leave_inode();
            model.take(offset, len);
        }
        if mode.intersects(Fallocate::PUNCH_HOLE | Fallocate::ZERO_RANGE) {
            let end = end.min(model.bytes.len());
            if (offset as usize) < end {
                model.bytes[offset as usize..end].fill(0);
            }
        }
        if !mode.contains(Fallocate::KEEP_SIZE) {
            model.bytes.resize(model.bytes.len().max(end), 0);
        }
        Ok(())
    }

    /// Writes; it may be refused only where no space is promised.
    pub(crate) fn try_write(&mut self, name: &str, offset: u64, len: u64) -> Result<()> {
        let data = holdfast_testkit::rng::pattern(self.rng.bits(), len as usize);
        self.put(name, offset, &data)
    }

    fn put(&mut self, name: &str, offset: u64, data: &[u8]) -> Result<()> {
        let file = self.open(name)?;
        println!("{name}: {} bytes to be written at {offset}", data.len());
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let written = self.fs.write(&self.who, &file, at, &data[done..])?;
            assert_ne!(written, 0, "{name}: nothing was written at {at}");
            let model = self.files.entry(name.to_owned()).or_default();
            model.put(at, &data[done..done + written]);
            done += written;
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, name: &str, offset: u64, len: u64) {
        let written = self.try_write(name, offset, len);
        let space = self.fs.statfs().unwrap();
        assert_eq!(
            written,
            Ok(()),
            "{name}: {len} bytes at {offset}, {space:?}"
        );
    }

    pub(crate) fn write_zeros(&mut self, name: &str, len: u64) {
        self.put(name, 0, &vec![0; len as usize]).unwrap();
    }

    pub(crate) fn resize(&mut self, name: &str, size: u64) {
        let file = self.open(name).unwrap();
        println!("{name}: now of {size} bytes");
        let set = SetAttr {
            size: Some(size),
            ..SetAttr::default()
        };
        self.fs.setattr(&self.who, file.node(), &set, None).unwrap();
        let model = self.files.entry(name.to_owned()).or_default();
        if size <= model.bytes.len() as u64 {
            model.room.truncate(size.div_ceil(BLOCK) as usize);
            model.tidy();
        }
        model.bytes.resize(size as usize, 0);
    }

    /// All bytes are as written.
    pub(crate) fn compare(&self) {
        for (name, model) in &self.files {
            let file = self.open(name).unwrap();
            let size = self.fs.getattr(file.node()).size as usize;
            assert_eq!(size, model.bytes.len(), "{name}");
            let mut found = vec![0; size];
            let mut done = 0;
            while done < size {
                done += self
                    .fs
                    .read(&file, done as u64, &mut found[done..])
                    .unwrap();
            }
            assert!(found == model.bytes, "{name} has other bytes");
        }
    }

    /// The check finds nothing; reopens the volume.
    pub(crate) fn assert_sound(&mut self) {
        self.close();
        assert_sound(&self.device);
        self.enter();
    }

    /// Everything can be removed from a full volume.
    pub(crate) fn empty(&mut self) {
        self.fill();
        let (fs, root) = (&self.fs, self.fs.root());
        let names = std::mem::take(&mut self.files);
        for name in names.keys().map(String::as_str).chain(["filler"]) {
            match fs.unlink_at(&self.who, &root, name.as_bytes()) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(error) => panic!("{name} stays: {error}"),
            }
        }
    }

    /// A random operation, mostly a write within promised space.
    pub(crate) fn operation(&mut self) {
        let name = format!("file-{}", self.rng.below(FILES));
        match self.rng.below(20) {
            0 => self.change_room(&name),
            1 => self.resize_somewhere(&name),
            2 => self.copy(&name),
            3 => self.write_anywhere(&name),
            4 => self.look_after_the_volume(),
            5..=7 => self.fill(),
            _ => self.write_within(&name),
        }
    }

    fn some_bytes(&mut self) -> (u64, u64) {
        let most = *self.rng.pick(&[100, 3000, 4096, 60_000, 300_000]);
        let offset = match self.rng.one_in(3) {
            true => 0,
            false => self.rng.below(SIZE_MAX / 2),
        };
        (offset, 1 + self.rng.below(most))
    }

    fn change_room(&mut self, name: &str) {
        let (offset, len) = self.some_bytes();
        let punch = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
        let modes = [
            Fallocate::KEEP_SIZE,
            Fallocate::KEEP_SIZE,
            Fallocate::empty(),
            Fallocate::ZERO_RANGE,
            punch,
        ];
        let mode = *self.rng.pick(&modes);
        if self.rng.one_in(3) {
            // So that there is something to take.
            let keep = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
            if let Ok(file) = self.open("filler") {
                let at = self.filled.saturating_sub(MIB / 2);
                self.fs
                    .fallocate(&self.who, &file, keep, at, MIB / 2)
                    .unwrap();
                let set = SetAttr {
                    size: Some(at),
                    ..SetAttr::default()
                };
                self.fs.setattr(&self.who, file.node(), &set, None).unwrap();
                self.filled = at;
            }
        }
        let promised = self
            .files
            .get(name)
            .is_some_and(|it| it.has_room(offset, len));
        let is_new = !self.files.contains_key(name);
        match self.allocate(name, mode, offset, len) {
            Ok(()) => {}
            Err(Errno::ENOSPC) if !promised && (mode != punch || is_new) => {}
            Err(error) => panic!("{name}: {mode:?}, {len} bytes at {offset}: {error}"),
        }
    }

    fn resize_somewhere(&mut self, name: &str) {
        let Some(model) = self.files.get(name) else {
            return;
        };
        let (size, room) = (model.bytes.len() as u64, !model.room.is_empty());
        let to = self.rng.below(SIZE_MAX);
        // An inline file may need a block to become mapped.
        if to <= size || size == 0 || size > 2048 || room && model.room[0] {
            self.resize(name, to);
        }
    }

    fn write_anywhere(&mut self, name: &str) {
        let (offset, len) = self.some_bytes();
        match self.try_write(name, offset, len) {
            Ok(()) | Err(Errno::ENOSPC) => {}
            Err(error) => panic!("{name}: {len} bytes at {offset}: {error}"),
        }
    }

    /// A range of a file that is allocated completely.
    fn within(&mut self, name: &str) -> Option<(u64, u64)> {
        for _ in 0..20 {
            let (offset, len) = self.some_bytes();
            let model = self.files.get(name)?;
            let blocks = model.room.len() as u64 * BLOCK;
            let offset = offset.min(blocks.saturating_sub(1));
            let len = len.min(blocks - offset);
            if len > 0 && model.has_room(offset, len) {
                return Some((offset, len));
            }
        }
        None
    }

    fn write_within(&mut self, name: &str) {
        if let Some((offset, len)) = self.within(name) {
            self.write(name, offset, len);
        }
    }

    fn copy(&mut self, name: &str) {
        let Some((offset, len)) = self.within(name) else {
            return;
        };
        let (source, target) = (self.open("filler"), self.open(name).unwrap());
        let Ok(source) = source else { return };
        let len = len.min(self.fs.getattr(source.node()).size);
        let mut data = vec![0; len as usize];
        let (mut read, mut done) = (0, 0);
        while read < data.len() {
            read += self
                .fs
                .read(&source, read as u64, &mut data[read..])
                .unwrap();
        }
        let holes = data.chunks(BLOCK as usize).any(|it| it.contains(&0));
        while done < len && !holes {
            let copied = self.fs.copy_file_range(
                &self.who,
                &source,
                done,
                &target,
                offset + done,
                len - done,
            );
            let copied = copied.unwrap_or_else(|error| panic!("{name}: a copy: {error}"));
            let from = done as usize;
            let model = self.files.entry(name.to_owned()).or_default();
            model.put(offset + done, &data[from..from + copied as usize]);
            done += copied;
        }
    }

    fn look_after_the_volume(&mut self) {
        self.fs.sync().unwrap();
        let what = self.rng.below(6);
        println!("the volume: {what}");
        match what {
            0 => self.again(),
            1 => self.kill(),
            2 | 3 => self.checkpoint(),
            _ => {}
        }
    }
}
