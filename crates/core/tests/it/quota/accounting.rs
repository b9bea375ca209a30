//! Random operations on a file system and a model: their states and errors are equal after each.

use super::model::{Model, Place};
use super::{PAGE, common, told, truth, user};
use holdfast_core::types::{
    Caller, Caps, Errno, Fallocate, FileType, OpenFlags, RenameFlags, Result, SetAttr,
};
use holdfast_core::{FileSystem, MemoryLimits, Node, OpenFile, Options, QuotaKind};
use holdfast_testkit::rng::Rng;
use std::collections::BTreeMap;

const FILE: FileType = FileType::Regular;

struct World {
    fs: FileSystem,
    dirs: [Node; 2],
    model: Model,
    open: Vec<(usize, OpenFile)>,
    numbers: Rng,
    refused: BTreeMap<i32, u32>,
}

impl World {
    fn new(seed: u64, store: Option<(u64, u64)>) -> Self {
        let limits = MemoryLimits {
            // Names take some, too.
            bytes: store.map(|(pages, _)| pages * PAGE + 2000),
            inodes: store.map(|(_, inodes)| inodes),
        };
        let fs = FileSystem::memory(limits, Options::default());
        let dirs = [common(&fs, b"0"), common(&fs, b"1")];
        let mut model = Model::new(3);
        model.store = store;
        Self {
            fs,
            dirs,
            model,
            open: Vec::new(),
            numbers: Rng::new(seed),
            refused: BTreeMap::new(),
        }
    }

    /// A caller, and whether it may exceed limits.
    fn someone(&mut self) -> (Caller, bool) {
        let mut who = user(
            self.numbers.below(3) as u32 + 1,
            self.numbers.below(2) as u32 + 10,
        );
        let privileged = self.numbers.one_in(10);
        who.caps.set(Caps::SYS_RESOURCE, privileged);
        (who, privileged)
    }

    fn place(&mut self) -> Place {
        let dir = self.numbers.below(2) as usize;
        (dir, self.numbers.below(8) as u8 + b'a')
    }

    /// A name that exists, if the first try finds one.
    fn named(&mut self) -> Option<(Place, usize)> {
        let place = self.place();
        self.model.names.get(&place).map(|id| (place, *id))
    }

    fn node(&self, place: Place) -> Node {
        let who = Caller::root();
        let dir = &self.dirs[place.0];
        self.fs.lookup(&who, dir, &[place.1]).unwrap()
    }

    /// Some open file.
    fn opened(&mut self) -> Option<usize> {
        let number = self.numbers.below(self.open.len().max(1) as u64) as usize;
        (number < self.open.len()).then_some(number)
    }

    /// Both results are equal.
    fn agree<T: PartialEq + std::fmt::Debug>(&mut self, real: Result<T>, model: Result<T>) {
        assert_eq!(real, model);
        if let Err(error) = real {
            *self.refused.entry(error.raw()).or_default() += 1;
        }
    }

    fn step(&mut self) {
        match self.numbers.below(21) {
            0..4 => self.create(),
            4 => self.tmpfile(),
            5 => self.link(),
            6 | 7 => self.remove(),
            8 | 9 => self.rename(),
            10 => self.reopen(),
            11 => self.close(),
            12..15 => self.write(),
            15 => self.truncate(),
            16 | 17 => self.fallocate(),
            18 | 19 => self.chown(),
            _ => self.switch(),
        }
    }

    fn create(&mut self) {
        let (who, privileged) = self.someone();
        let place = self.place();
        if self.model.names.contains_key(&place) {
            return;
        }
        let kinds = [FileType::Directory, FileType::Symlink, FileType::Fifo];
        let kind = *kinds.get(self.numbers.below(8) as usize).unwrap_or(&FILE);
        let (dir, name) = (&self.dirs[place.0], &[place.1]);
        let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let (real, file) = match kind {
            FileType::Directory => (self.fs.mkdir(&who, dir, name, 0o755).map(drop), None),
            FileType::Symlink => (self.fs.symlink(&who, dir, name, b"t").map(drop), None),
            FileType::Fifo => (
                self.fs.mknod(&who, dir, name, kind, 0o644, 0).map(drop),
                None,
            ),
            _ => match self.fs.create(&who, dir, name, 0o644, flags) {
                Ok(file) => (Ok(()), Some(file)),
                Err(error) => (Err(error), None),
            },
        };
        let made = self.model.make(kind, (who.uid, who.gid), privileged);
        if let Ok(id) = made {
            self.model.enter(place, id);
            if let Some(file) = file.filter(|_| self.numbers.one_in(2)) {
                self.model.thing(id).uses += 1;
                self.open.push((id, file));
            }
        }
        self.agree(real, made.map(drop));
    }

    fn tmpfile(&mut self) {
        let (who, privileged) = self.someone();
        let flags = OpenFlags::READ_WRITE;
        let real = self.fs.tmpfile(&who, &self.dirs[0], 0o600, flags);
        let made = self.model.make(FILE, (who.uid, who.gid), privileged);
        let answer = real.as_ref().map(drop).map_err(|error| *error);
        self.agree(answer, made.map(drop));
        if let (Ok(id), Ok(file)) = (made, real) {
            let thing = self.model.thing(id);
            (thing.uses, thing.linkable) = (1, true);
            self.open.push((id, file));
        }
    }

    fn link(&mut self) {
        let place = self.place();
        let Some(number) = self.opened() else { return };
        if self.model.names.contains_key(&place) {
            return;
        }
        let (id, file) = &self.open[number];
        let (id, dir) = (*id, &self.dirs[place.0]);
        let real = self.fs.link(&Caller::root(), file.node(), dir, &[place.1]);
        let thing = self.model.thing(id);
        let mut expected = Ok(());
        if thing.nlink == 0 && !thing.linkable {
            expected = Err(Errno::ENOENT);
        } else {
            self.model.enter(place, id);
        }
        self.agree(real, expected);
    }

    fn remove(&mut self) {
        let Some((place, id)) = self.named() else {
            return;
        };
        let (who, dir) = (Caller::root(), &self.dirs[place.0]);
        let real = if self.model.thing(id).kind.is_dir() {
            self.fs.rmdir(&who, dir, &[place.1])
        } else {
            self.fs.unlink(&who, dir, &[place.1])
        };
        self.model.leave(place);
        self.agree(real, Ok(()));
    }

    fn rename(&mut self) {
        let (who, privileged) = self.someone();
        let Some((from, moved)) = self.named() else {
            return;
        };
        let to = self.place();
        let target = self.model.names.get(&to).copied();
        if let Some(target) = target
            && self.model.thing(target).kind.is_dir() != self.model.thing(moved).kind.is_dir()
        {
            return;
        }
        let flags = match self.numbers.below(4) {
            0 => RenameFlags::WHITEOUT,
            1 if target.is_some() => RenameFlags::EXCHANGE,
            _ => RenameFlags::empty(),
        };
        let dirs = (&self.dirs[from.0], &self.dirs[to.0]);
        let (old, new) = ([from.1], [to.1]);
        let real = self.fs.rename(&who, dirs.0, &old, dirs.1, &new, flags);
        let expected = self.renamed((from, moved), (to, target), flags, (who, privileged));
        self.agree(real, expected);
    }

    fn renamed(
        &mut self,
        (from, moved): (Place, usize),
        (to, target): (Place, Option<usize>),
        flags: RenameFlags,
        (who, privileged): (Caller, bool),
    ) -> Result<()> {
        let model = &mut self.model;
        match target {
            Some(target) if target == moved => return Ok(()),
            Some(target) if flags == RenameFlags::EXCHANGE => {
                model.names.insert(from, target);
                model.names.insert(to, moved);
                return Ok(());
            }
            _ => {}
        }
        let whiteout = match flags {
            RenameFlags::WHITEOUT => {
                let owner = (who.uid, who.gid);
                Some(model.make(FileType::CharDevice, owner, privileged)?)
            }
            _ => None,
        };
        if target.is_some() {
            model.leave(to);
        }
        model.names.remove(&from);
        model.names.insert(to, moved);
        if let Some(whiteout) = whiteout {
            model.enter(from, whiteout);
        }
        Ok(())
    }

    fn reopen(&mut self) {
        let Some((place, id)) = self.named() else {
            return;
        };
        if self.model.thing(id).kind == FILE {
            let flags = OpenFlags::READ_WRITE;
            let file = self.fs.open(&Caller::root(), &self.node(place), flags);
            self.open.push((id, file.unwrap()));
            self.model.thing(id).uses += 1;
        }
    }

    fn close(&mut self) {
        if let Some(number) = self.opened() {
            let (id, file) = self.open.swap_remove(number);
            drop(file);
            self.model.close(id);
        }
    }

    fn write(&mut self) {
        let (who, privileged) = self.someone();
        let Some(number) = self.opened() else { return };
        let at = self.numbers.below(90 * PAGE);
        let pages = if self.numbers.one_in(6) { 80 } else { 3 };
        let len = self.numbers.below(pages * PAGE) + 1;
        let (id, file) = &self.open[number];
        let data = vec![7; len as usize];
        let real = self.fs.write(&who, file, at, &data);
        let expected = self.model.write(*id, at, len, privileged);
        self.agree(real.map(|written| written as u64), expected);
    }

    fn truncate(&mut self) {
        let Some(number) = self.opened() else { return };
        let size = self.numbers.below(100 * PAGE);
        let set = SetAttr {
            size: Some(size),
            ..SetAttr::default()
        };
        let (id, file) = &self.open[number];
        let who = user(1, 10);
        let real = self.fs.setattr(&who, file.node(), &set, Some(file));
        self.model.truncate(*id, size);
        self.agree(real.map(|attr| attr.size), Ok(size));
    }

    fn fallocate(&mut self) {
        let (who, privileged) = self.someone();
        let Some(number) = self.opened() else { return };
        let mut at = self.numbers.below(90 * PAGE);
        let mut len = self.numbers.below(9 * PAGE) + 1;
        let keep = self.numbers.one_in(2);
        let (id, file) = &self.open[number];
        let (model, size) = (&mut self.model, self.fs.getattr(file.node()).size);
        let mut mode = Fallocate::empty();
        mode.set(Fallocate::KEEP_SIZE, keep);
        let what = self.numbers.below(5);
        if what > 2 {
            (at, len) = (at / PAGE * PAGE, len.div_ceil(PAGE) * PAGE);
            if at + len >= size {
                return;
            }
        }
        let pages = at / PAGE..(at + len) / PAGE;
        let mut expected = Ok(());
        match what {
            0 | 1 => {
                mode.set(Fallocate::ZERO_RANGE, what == 1);
                expected = model.allocate(*id, at, len, privileged);
                if expected.is_ok() && !keep {
                    model.thing(*id).size = size.max(at + len);
                }
            }
            2 => {
                mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
                model.punch(*id, at, len);
            }
            3 => {
                mode = Fallocate::COLLAPSE_RANGE;
                model.collapse(*id, &pages);
            }
            _ => {
                mode = Fallocate::INSERT_RANGE;
                model.insert(*id, &pages);
            }
        }
        let real = self.fs.fallocate(&who, file, mode, at, len);
        let (now, modelled) = (self.fs.getattr(file.node()).size, model.thing(*id).size);
        assert_eq!(now, modelled);
        self.agree(real, expected);
    }

    fn chown(&mut self) {
        let (who, privileged) = self.someone();
        let (to, _) = self.someone();
        let Some((place, id)) = self.named() else {
            return;
        };
        let node = self.node(place);
        let shrinks = self.model.thing(id).kind == FILE && self.numbers.one_in(3);
        let set = SetAttr {
            uid: Some(to.uid),
            gid: Some(to.gid).filter(|_| self.numbers.one_in(2)),
            perm: Some(0o640),
            size: Some(PAGE).filter(|_| shrinks),
            ..SetAttr::default()
        };
        let before = self.fs.getattr(&node);
        let real = self.fs.setattr(&who, &node, &set, None);
        let new = (to.uid, set.gid.unwrap_or(before.gid));
        let expected = self.model.chown(id, new, privileged);
        if expected.is_err() {
            assert_eq!(self.fs.getattr(&node), before, "all or nothing");
        } else if shrinks {
            self.model.truncate(id, PAGE);
        }
        self.agree(real.map(drop), expected);
    }

    /// Sets other limits; now and then switches quotas off or on.
    fn switch(&mut self) {
        let Some(limits) = &mut self.model.limits else {
            self.fs.quota_on(true).unwrap();
            self.model.limits = Some(BTreeMap::new());
            return;
        };
        if self.numbers.one_in(8) {
            self.fs.quota_off();
            self.model.limits = None;
            return;
        }
        let account = match self.numbers.below(5) {
            user @ 0..3 => (QuotaKind::User, user as u32 + 1),
            group => (QuotaKind::Group, group as u32 + 7),
        };
        let new = (self.numbers.below(200), self.numbers.below(12));
        let given = super::hard(Some(new.0), Some(new.1));
        self.fs.set_quota(account.0, account.1, &given).unwrap();
        limits.insert(account, new);
    }

    /// Compares the model with the quotas' report and with the inodes.
    fn check(&self, round: u32) {
        let usage = self.model.usage();
        if self.model.limits.is_some() {
            assert_eq!(told(&self.fs), usage, "after step {round}");
        } else {
            assert!(self.fs.quota_report().is_empty());
        }
        if round.is_multiple_of(64) {
            assert_eq!(truth(&self.fs), usage, "after step {round}");
        }
    }

    fn run(mut self, steps: u32) {
        for round in 0..steps {
            self.step();
            self.check(round);
        }
        let refusals = |errno: Errno| self.refused.get(&errno.raw()).copied().unwrap_or(0);
        assert!(refusals(Errno::EDQUOT) > steps / 100, "limits were met");
        let store_met = refusals(Errno::ENOSPC) > steps / 200;
        assert_eq!(store_met, self.model.store.is_some());
    }
}

#[test]
fn usage_and_refusals_are_those_of_a_model() {
    for seed in 0..8 {
        World::new(seed, None).run(4000);
    }
}

#[test]
fn a_store_that_refuses_what_the_quota_allowed_leaves_no_charge() {
    for seed in 100..108 {
        World::new(seed, Some((150, 16))).run(4000);
    }
}
