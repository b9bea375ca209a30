//! What is done to a full file system.

use super::model::{Kind, Thing};
use super::world::World;
use holdfast_types::{Caller, Errno, Fallocate, RenameFlags, SetAttr, SetTime, XattrSet};

/// Names at most, beside those of links.
const NAMES: u64 = 60;
/// Bytes of a file at most.
const SIZE_MAX: u64 = 256 << 10;

/// Was it refused for want of space?
type Done = Result<bool, String>;

fn pages(offset: u64, len: u64) -> u64 {
    (offset + len).div_ceil(4096) - offset / 4096
}

impl World {
    /// One operation.
    pub(super) fn operation(&mut self) -> Done {
        match self.rng.below(24) {
            0..=5 => self.write(),
            6..=7 => self.resize(),
            8..=10 => self.allocate(),
            11 => self.copy(),
            12 => self.make_directory(),
            13 => self.make_link(),
            14 => self.make_symlink(),
            15..=16 => self.rename(),
            17..=18 => self.set_value(),
            19 => self.remove_value(),
            20 => self.change_mode(),
            21 => self.fsync(),
            _ => self.remove_some(),
        }
    }

    /// What an operation answered, which may need so many pages. `never`: it must not be refused.
    fn judge(
        &mut self,
        what: &str,
        pages: Option<u64>,
        done: Result<(), Errno>,
    ) -> Result<bool, String> {
        match (done, pages) {
            (Ok(()), _) => Ok(false),
            (Err(Errno::ENOSPC), Some(pages)) => self.check_refusal(what, pages).map(|()| true),
            (Err(error), _) => Err(format!("{what}: {error}")),
        }
    }

    /// A name for something new, of any length.
    fn name(&mut self) -> String {
        let number = self.rng.below(NAMES);
        match self.rng.below(4) {
            0 => format!("{number:0>230}"),
            1 => format!("a name of some length, number {number}"),
            _ => format!("n{number}"),
        }
    }

    /// A file that is there, or a name that is not.
    fn file_name(&mut self) -> String {
        for _ in 0..8 {
            let name = self.name();
            match self.model.things.get(&name) {
                Some(thing) if thing.kind != Kind::File => {}
                _ => return name,
            }
        }
        format!("spare-{}", self.rng.below(4))
    }

    fn some_of(&mut self, fits: impl Fn(&Thing) -> bool) -> Option<String> {
        let things = self.model.things.iter();
        let names: Vec<&String> = things.filter(|(_, it)| fits(it)).map(|it| it.0).collect();
        match names.is_empty() {
            true => None,
            false => Some((*self.rng.pick(&names)).clone()),
        }
    }

    fn bytes(&mut self, len: u64) -> Vec<u8> {
        let first = self.rng.bits();
        let byte = |at: u64| (first.wrapping_add(at.wrapping_mul(7)) >> 3) as u8 | 1;
        (0..len).map(byte).collect()
    }

    fn write(&mut self) -> Done {
        let (name, who) = (self.file_name(), self.who());
        let known = self.model.things.get(&name).cloned();
        let file = match self.file(&name, &who) {
            Ok(file) => file,
            Err(error) => return self.judge("create", Some(0), Err(error)),
        };
        let mut thing = known.unwrap_or_default();
        let size = thing.bytes.len() as u64;
        let offset = match self.rng.below(4) {
            0 => self.rng.below(SIZE_MAX / 2),
            1 => self.rng.below(size + 1),
            _ => size.min(SIZE_MAX - 4096),
        };
        let most = *self.rng.pick(&[100, 1500, 4096, 20_000, 60_000]);
        let len = 1 + self.rng.below(most);
        let data = self.bytes(len);
        let written = self.fs.write(&who, &file, offset, &data);
        if let Ok(written) = written {
            let end = offset as usize + written;
            thing.bytes.resize(thing.bytes.len().max(end), 0);
            thing.bytes[offset as usize..end].copy_from_slice(&data[..written]);
        }
        self.model.put(&name, thing);
        let short = written == Ok(0);
        let done = match short {
            true => Err(Errno::EIO),
            false => written.map(drop),
        };
        self.judge("write", Some(pages(offset, len)), done)
    }

    fn resize(&mut self) -> Done {
        let Some(name) = self.some_of(|it| it.kind == Kind::File) else {
            return Ok(false);
        };
        let node = self.node(&name).map_err(|error| error.to_string())?;
        let mut thing = self.model.things[&name].clone();
        let most = *self.rng.pick(&[1, 3000, SIZE_MAX]);
        let size = self.rng.below(most);
        let set = SetAttr {
            size: Some(size),
            ..SetAttr::default()
        };
        let grows = size > thing.bytes.len() as u64;
        let done = self
            .fs
            .setattr(&Caller::root(), &node, &set, None)
            .map(drop);
        if done.is_ok() {
            thing.bytes.resize(size as usize, 0);
        }
        self.model.put(&name, thing);
        self.judge("truncate", grows.then_some(1), done)
    }

    fn allocate(&mut self) -> Done {
        let Some(name) = self.some_of(|it| it.kind == Kind::File) else {
            return Ok(false);
        };
        let who = Caller::root();
        let file = self.file(&name, &who).map_err(|error| error.to_string())?;
        let mut thing = self.model.things[&name].clone();
        let size = thing.bytes.len() as u64;
        let kind = self.rng.below(6);
        let whole = |at: u64| at / 4096 * 4096;
        let (mut offset, mut len) = (self.rng.below(SIZE_MAX / 2), 1 + self.rng.below(100_000));
        if kind >= 4 {
            (offset, len) = (whole(offset % (size + 1)), whole(len) + 4096);
        }
        if kind == 4 && offset + len >= size || kind == 5 && (offset >= size || size > SIZE_MAX) {
            return Ok(false);
        }
        let modes = [
            Fallocate::empty(),
            Fallocate::KEEP_SIZE,
            Fallocate::ZERO_RANGE,
            Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE,
            Fallocate::COLLAPSE_RANGE,
            Fallocate::INSERT_RANGE,
        ];
        let done = self
            .fs
            .fallocate(&who, &file, modes[kind as usize], offset, len);
        let (from, to) = (offset as usize, (offset + len) as usize);
        if done.is_ok() {
            let bytes = &mut thing.bytes;
            if kind == 0 || kind == 2 {
                bytes.resize(bytes.len().max(to), 0);
            }
            let end = to.min(bytes.len());
            match kind {
                2 | 3 if from < end => bytes[from..end].fill(0),
                4 => drop(bytes.drain(from..to)),
                5 => drop(bytes.splice(from..from, vec![0; len as usize])),
                _ => {}
            }
        }
        self.model.put(&name, thing);
        let wanted = match kind {
            3 | 4 => None,
            5 => Some(1),
            _ => Some(pages(offset, len) + 1),
        };
        self.judge(&format!("fallocate {kind}"), wanted, done)
    }

    fn copy(&mut self) -> Done {
        let from = self.some_of(|it| it.kind == Kind::File && !it.bytes.is_empty());
        let to = self.some_of(|it| it.kind == Kind::File);
        let (Some(from), Some(to)) = (from, to) else {
            return Ok(false);
        };
        if from == to {
            return Ok(false);
        }
        let who = Caller::root();
        let open = |name: &str| self.file(name, &who).map_err(|error| error.to_string());
        let (source, target) = (open(&from)?, open(&to)?);
        let bytes = self.model.things[&from].bytes.clone();
        let mut thing = self.model.things[&to].clone();
        let at = self.rng.below(bytes.len() as u64);
        let len = 1 + self.rng.below(80_000);
        let place = self.rng.below(SIZE_MAX / 2);
        let copied = self
            .fs
            .copy_file_range(&who, &source, at, &target, place, len);
        if let Ok(copied) = copied {
            let (from, to, count) = (at as usize, place as usize, copied as usize);
            thing.bytes.resize(thing.bytes.len().max(to + count), 0);
            thing.bytes[to..to + count].copy_from_slice(&bytes[from..from + count]);
        }
        self.model.put(&to, thing);
        self.judge(
            "copy_file_range",
            Some(pages(place, len) + 1),
            copied.map(drop),
        )
    }

    fn make_directory(&mut self) -> Done {
        let (name, who, root) = (self.name(), self.who(), self.fs.root());
        if self.model.things.contains_key(&name) {
            return Ok(false);
        }
        let made = self.fs.mkdir(&who, &root, name.as_bytes(), 0o777);
        let done = made.map(drop);
        if done.is_ok() {
            let kind = Kind::Directory;
            let thing = Thing {
                kind,
                ..Thing::default()
            };
            self.model.put(&name, thing);
        }
        self.judge("mkdir", Some(0), done)
    }

    fn make_symlink(&mut self) -> Done {
        let (name, who, root) = (self.name(), self.who(), self.fs.root());
        if self.model.things.contains_key(&name) {
            return Ok(false);
        }
        let most = *self.rng.pick(&[20, 4000]);
        let len = 1 + self.rng.below(most);
        let target = self.bytes(len);
        let done = self.fs.symlink(&who, &root, name.as_bytes(), &target);
        let done = done.map(drop);
        if done.is_ok() {
            let thing = Thing {
                kind: Kind::Symlink,
                bytes: target,
                ..Thing::default()
            };
            self.model.put(&name, thing);
        }
        self.judge("symlink", Some(0), done)
    }

    fn make_link(&mut self) -> Done {
        let (name, who, root) = (self.name(), Caller::root(), self.fs.root());
        let of = self.some_of(|it| matches!(it.kind, Kind::File | Kind::Link));
        let Some(of) = of.filter(|_| !self.model.things.contains_key(&name)) else {
            return Ok(false);
        };
        let node = self.node(&of).map_err(|error| error.to_string())?;
        let done = self.fs.link(&who, &node, &root, name.as_bytes());
        if done.is_ok() {
            let kind = Kind::Link;
            let thing = Thing {
                kind,
                ..self.model.things[&of].clone()
            };
            self.model.put(&of, thing.clone());
            self.model.put(&name, thing);
        }
        self.judge("link", Some(0), done)
    }

    fn rename(&mut self) -> Done {
        let (to, root) = (self.name(), self.fs.root());
        let not_dir = |it: &Thing| it.kind != Kind::Directory;
        let Some(from) = self.some_of(not_dir) else {
            return Ok(false);
        };
        let target = self.model.things.get(&to);
        let linked = |it: &Thing| it.kind == Kind::Link;
        // Two names of one file stay both.
        if from == to
            || target.is_some_and(|it| !not_dir(it) || linked(it))
            || linked(&self.model.things[&from]) && target.is_some()
        {
            return Ok(false);
        }
        let over = target.is_some();
        let flags = RenameFlags::empty();
        let who = Caller::root();
        let done = self
            .fs
            .rename(&who, &root, from.as_bytes(), &root, to.as_bytes(), flags);
        if done.is_ok()
            && let Some(thing) = self.model.take(&from)
        {
            self.model.put(&to, thing);
        }
        self.judge("rename", (!over).then_some(0), done)
    }

    fn set_value(&mut self) -> Done {
        let fits = |it: &Thing| matches!(it.kind, Kind::File | Kind::Directory);
        let Some(name) = self.some_of(fits) else {
            return Ok(false);
        };
        let node = self.node(&name).map_err(|error| error.to_string())?;
        let most = *self.rng.pick(&[10, 300, 5000, 60_000]);
        let len = 1 + self.rng.below(most);
        let (key, value) = (format!("user.k{}", self.rng.below(3)), self.bytes(len));
        let who = Caller::root();
        let set = XattrSet::Any;
        let done = self.fs.setxattr(&who, &node, key.as_bytes(), &value, set);
        let mut thing = self.model.things[&name].clone();
        if done.is_ok() {
            thing.values.insert(key, value);
        }
        self.model.put(&name, thing);
        self.judge("setxattr", Some(2 * len.div_ceil(4096)), done)
    }

    fn remove_value(&mut self) -> Done {
        let fits = |it: &Thing| it.kind != Kind::Link && !it.values.is_empty();
        let Some(name) = self.some_of(fits) else {
            return Ok(false);
        };
        let node = self.node(&name).map_err(|error| error.to_string())?;
        let mut thing = self.model.things[&name].clone();
        let Some((key, _)) = thing.values.pop_first() else {
            return Ok(false);
        };
        let done = self.fs.removexattr(&Caller::root(), &node, key.as_bytes());
        self.model.put(&name, thing);
        self.judge("removexattr", None, done)
    }

    fn change_mode(&mut self) -> Done {
        let Some(name) = self.some_of(|it| it.kind != Kind::Symlink) else {
            return Ok(false);
        };
        let node = self.node(&name).map_err(|error| error.to_string())?;
        let set = SetAttr {
            perm: Some(0o777),
            mtime: Some(SetTime::Now),
            ..SetAttr::default()
        };
        let done = self.fs.setattr(&Caller::root(), &node, &set, None);
        self.judge("chmod", Some(0), done.map(drop))
    }

    fn fsync(&mut self) -> Done {
        let Some(name) = self.some_of(|it| it.kind == Kind::File) else {
            return Ok(false);
        };
        let file = self.file(&name, &Caller::root());
        let file = file.map_err(|error| error.to_string())?;
        let done = self.fs.fsync(&file, false);
        // Of that file at least.
        if let Some(thing) = self.model.things.get_mut(&name) {
            thing.touched &= done.is_err();
        }
        self.judge("fsync", None, done)
    }

    fn remove_some(&mut self) -> Done {
        let Some(name) = self.some_of(|_| true) else {
            return Ok(false);
        };
        self.remove(&name)?;
        Ok(false)
    }

    /// Removes a name, which must succeed.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), String> {
        let (who, root) = (Caller::user(1000, 1000), self.fs.root());
        let Some(thing) = self.model.take(name) else {
            return Ok(());
        };
        let removed = match thing.kind {
            Kind::Directory => self.fs.rmdir(&who, &root, name.as_bytes()),
            _ => self.fs.unlink(&who, &root, name.as_bytes()),
        };
        removed.map_err(|error| format!("removing {name}: {error}"))
    }
}
