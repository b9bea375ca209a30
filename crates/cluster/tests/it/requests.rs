//! Random requests by two sessions: the engine answers as the model does, and sends messages of
//! everything that changed.

use crate::model::{Errors, Inode, Model};
use crate::receiver::Receiver;
use holdfast_cluster::memory::Database;
use holdfast_cluster::meta::{
    Answer, Beat, Change, Content, Edit, Extent, Flush, Meta, NewInode, Node, Pages, Request,
    Settings, Size,
};
use holdfast_core::store::Version;
use holdfast_testkit::rng::{Rng, pattern};
use holdfast_testkit::{effort, seed};
use holdfast_types::{Errno, FileType, Ino, RenameFlags, Time, XattrSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const PAGE: u64 = 4096;
const NAMES: [&[u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];
const XATTRS: [&[u8]; 2] = [b"user.x", b"user.y"];

/// Two sessions beside a model.
struct Run {
    random: Rng,
    sessions: [Arc<dyn Meta>; 2],
    receivers: [Receiver; 2],
    model: Model,
    /// The version that each inode had last, by the answers.
    versions: BTreeMap<Ino, Version>,
    objects: BTreeMap<u64, Vec<u8>>,
}

/// Performs random requests by two sessions of one database, which is empty.
///
/// # Panics
/// If the database does anything that the model does not.
pub(crate) fn agrees(sessions: [Arc<dyn Meta>; 2], seed: u64, steps: usize, pass: impl Fn()) {
    let root = sessions[0].load(&[Ino::ROOT], &[]).unwrap().remove(0);
    let mut run = Run {
        random: Rng::new(seed),
        sessions,
        receivers: Default::default(),
        model: Model::default(),
        versions: BTreeMap::from([(Ino::ROOT, Version::of(&root.record))]),
        objects: BTreeMap::new(),
    };
    let new = run.new_inode(FileType::Directory);
    run.model.make(
        (Ino(0), b"root"),
        &NewInode {
            ino: Ino::ROOT,
            ..new
        },
    );
    run.model
        .inodes
        .entry(Ino::ROOT)
        .or_insert_with(|| root_inode(&root));
    run.model.names.clear();
    for step in 0..steps {
        run.step(step);
        pass();
        if step % 16 == 15 {
            run.compare();
        }
    }
    run.compare();
}

fn root_inode(root: &Node) -> Inode {
    Inode {
        kind: root.record.kind,
        perm: root.record.perm,
        uid: root.record.uid,
        size: 0,
        pages: BTreeMap::new(),
        xattrs: BTreeMap::new(),
        named: true,
        keepers: BTreeSet::new(),
    }
}

impl Run {
    fn deal(&self, count: u64) -> u64 {
        self.sessions[0].deal(count).unwrap().start
    }

    fn new_inode(&mut self, kind: FileType) -> NewInode {
        NewInode {
            perm: self.random.below(0o1000) as u16,
            uid: self.random.below(3) as u32,
            ..NewInode::new(Ino(self.deal(1)), kind)
        }
    }

    /// Any inode, or none.
    fn ino(&mut self) -> Ino {
        let index = self.random.index(self.model.inodes.len() + 1);
        let ino = self.model.inodes.keys().nth(index);
        ino.copied().unwrap_or(Ino(9))
    }

    /// Most often a directory with a name.
    fn place(&mut self) -> (Ino, Box<[u8]>) {
        let name = Box::from(*self.random.pick(&NAMES));
        if self.random.one_in(16) {
            return (self.ino(), name);
        }
        let dirs: Vec<Ino> = self
            .model
            .inodes
            .iter()
            .filter(|(ino, inode)| inode.kind.is_dir() && self.model.nlink(**ino) > 0)
            .map(|(ino, _)| *ino)
            .collect();
        (*self.random.pick(&dirs), name)
    }

    fn step(&mut self, step: usize) {
        let session = self.random.index(2);
        match self.random.below(24) {
            0..=4 => self.make(session, step),
            5 | 6 => {
                let (dir, name) = self.place();
                let directory = self.random.one_in(2);
                let errors = self.model.remove((dir, &name), directory);
                let request = Request::Remove {
                    dir,
                    name: name.clone(),
                    directory,
                };
                self.perform(session, request, &[(dir, name)], errors);
            }
            7 => {
                let (ino, (dir, name)) = (self.ino(), self.place());
                let errors = self.model.link(ino, (dir, &name));
                let cookie = self.deal(1);
                let request = Request::Link {
                    ino,
                    dir,
                    name: name.clone(),
                    cookie,
                };
                self.perform(session, request, &[(dir, name)], errors);
            }
            8..=11 => self.rename(session),
            12 => {
                let ino = self.ino();
                let change = Change {
                    perm: self.random.one_in(2).then_some(0o7),
                    uid: self.random.one_in(2).then_some(5),
                    ..Change::default()
                };
                let errors = self.model.change(ino, &change);
                self.perform(session, Request::SetAttributes { ino, change }, &[], errors);
            }
            13 => self.xattr(session),
            14..=17 => self.flush(session),
            18 => self.sweep(),
            19 => {
                let (topic, _) = self.place();
                let given_back = self.receivers[session].forget(topic);
                let beat = Beat {
                    unsubscribes: given_back.into_iter().collect(),
                    ..Beat::default()
                };
                let looked_at = self.receivers[session].looked_at;
                self.receivers[session].beat(&*self.sessions[session], beat);
                self.receivers[session].looked_at = looked_at;
            }
            _ => {
                let (dir, name) = self.place();
                self.receivers[session].ask(&*self.sessions[session], dir, &name);
            }
        }
    }

    fn make(&mut self, session: usize, step: usize) {
        let kind = *self.random.pick(&[FileType::Regular, FileType::Directory]);
        let mut new = self.new_inode(kind);
        let (dir, name) = self.place();
        if self.random.one_in(8) {
            new.kind = FileType::Regular;
            let errors = self.model.make_unnamed(session, dir, &new);
            self.perform(session, Request::MakeUnnamed { dir, new }, &[], errors);
            return;
        }
        if step.is_multiple_of(9) {
            new.xattrs = vec![(XATTRS[0].into(), Box::from(*b"new"))];
        }
        let errors = self.model.make((dir, &name), &new);
        if errors.is_empty() {
            let inode = self.model.inodes.get_mut(&new.ino).unwrap();
            inode.xattrs = new.xattrs.iter().cloned().collect();
        }
        let request = Request::Make {
            dir,
            name: name.clone(),
            new,
        };
        self.perform(session, request, &[(dir, name)], errors);
    }

    fn rename(&mut self, session: usize) {
        let (from, to) = (self.place(), self.place());
        let flags = *self.random.pick(&[
            RenameFlags::empty(),
            RenameFlags::empty(),
            RenameFlags::EXCHANGE,
            RenameFlags::NOREPLACE,
            RenameFlags::WHITEOUT,
            RenameFlags::EXCHANGE | RenameFlags::NOREPLACE,
        ]);
        let whiteout = flags.contains(RenameFlags::WHITEOUT);
        let whiteout = whiteout.then(|| self.new_inode(FileType::CharDevice));
        let places = ((from.0, &*from.1), (to.0, &*to.1));
        let errors = self
            .model
            .rename(places.0, places.1, flags, whiteout.as_ref());
        let request = Request::Rename {
            from: from.clone(),
            to: to.clone(),
            flags,
            cookie: self.deal(2),
            whiteout,
        };
        self.perform(session, request, &[from, to], errors);
    }

    fn xattr(&mut self, session: usize) {
        let (ino, name) = (self.ino(), *self.random.pick(&XATTRS));
        if self.random.one_in(3) {
            let inode = self.model.inodes.get_mut(&ino);
            let removed = inode.map(|inode| inode.xattrs.remove(name).is_some());
            let errors = match removed {
                None => vec![Errno::ESTALE],
                Some(false) => vec![Errno::ENODATA],
                Some(true) => vec![],
            };
            let request = Request::RemoveXattr {
                ino,
                name: name.into(),
            };
            return self.perform(session, request, &[], errors);
        }
        let value = (!self.random.one_in(4)).then(|| Box::from(self.random.bits().to_le_bytes()));
        let how = *self
            .random
            .pick(&[XattrSet::Any, XattrSet::Create, XattrSet::Replace]);
        let errors = self.model.set_xattr(ino, name, value.as_deref(), how);
        let request = Request::SetXattr {
            ino,
            name: name.into(),
            value,
            how,
            perm: None,
        };
        self.perform(session, request, &[], errors);
    }

    /// Changes the content of a file.
    fn flush(&mut self, session: usize) {
        let files = self.model.inodes.iter();
        let files = files.filter(|(_, inode)| inode.kind == FileType::Regular);
        let files: Vec<Ino> = files.map(|(ino, _)| *ino).collect();
        if files.is_empty() {
            return;
        }
        let ino = *self.random.pick(&files);
        let (generation, content) = self.sessions[session].content(ino).unwrap();
        let has_body = matches!(content, Content::Body { .. });
        let stale = self.random.one_in(8) && generation > 1;
        let blind = self.random.one_in(4);
        let mut inode = self.model.inodes[&ino].clone();
        let edit = match self.random.below(4) {
            0 => Edit::None,
            1 => self.body(&mut inode),
            _ => self.map(&mut inode),
        };
        let size = match (&edit, self.random.below(3)) {
            (_, 0) => None,
            (Edit::None, _) => {
                let size = self.random.below(5 * PAGE);
                inode.size = size;
                inode.cut(size);
                Some(Size::Exactly(size))
            }
            _ => {
                let size = self.random.below(20 * PAGE);
                inode.size = inode.size.max(size);
                Some(Size::AtLeast(size))
            }
        };
        let refused = match edit {
            Edit::None => false,
            Edit::Replace { .. } => stale,
            Edit::Map { .. } => has_body || stale && !blind,
        };
        let request = Request::Flush(Flush {
            ino,
            generation: match edit {
                Edit::Map { .. } if blind => 0,
                _ => generation - u64::from(stale),
            },
            edit,
            size,
            changed: Some(Time::new(900 + self.random.below(200) as i64, 0)),
            change: Change::default(),
        });
        if refused {
            let answer = self.sessions[session].perform(request);
            assert_eq!(answer, Ok(Answer::Refused));
            return;
        }
        self.model.inodes.insert(ino, inode);
        self.perform(session, request, &[], vec![]);
    }

    fn body(&mut self, inode: &mut Inode) -> Edit {
        let bytes = pattern(self.random.bits(), self.random.index(16 * PAGE as usize));
        inode.pages.clear();
        inode.put(0, &bytes);
        let pages = Pages(inode.pages.keys().map(|page| 1 << page).sum());
        let bytes = bytes.into();
        Edit::Replace {
            content: Content::Body { bytes, pages },
            objects: Vec::new(),
        }
    }

    fn map(&mut self, inode: &mut Inode) -> Edit {
        let object = self.deal(1);
        let bytes = pattern(self.random.bits(), 8 * PAGE as usize);
        let cut = self.random.one_in(4).then(|| self.random.below(20 * PAGE));
        if let Some(end) = cut {
            inode.cut(end);
        }
        let mut clear = Vec::new();
        if self.random.one_in(2) {
            let (offset, len) = (self.random.below(16) * PAGE, self.random.below(4) * PAGE);
            inode.clear(offset, len);
            clear.push((offset, len));
        }
        let mut add = Vec::new();
        for _ in 0..self.random.below(3) {
            let extent = Extent {
                offset: self.random.below(16) * PAGE,
                len: 1 + self.random.below(4 * PAGE),
                object: if self.random.one_in(5) { 0 } else { object },
                object_offset: self.random.below(4 * PAGE),
            };
            let start = extent.object_offset as usize;
            match extent.object {
                0 => inode.put(extent.offset, &vec![0; extent.len as usize]),
                _ => inode.put(extent.offset, &bytes[start..][..extent.len as usize]),
            }
            add.push(extent);
        }
        let objects = vec![(object, bytes.len() as u64)];
        self.objects.insert(object, bytes);
        Edit::Map {
            cut,
            clear,
            add,
            objects,
        }
    }

    /// All sessions look at what has no name, and what none uses is freed.
    fn sweep(&mut self) {
        for session in 0..2 {
            let asked = self.receivers[session].beat(&*self.sessions[session], Beat::default());
            let knows: Vec<Ino> = asked
                .into_iter()
                .filter(|_| self.random.one_in(4))
                .collect();
            let kept = self.model.inodes.iter();
            let kept = kept.filter(|(_, inode)| inode.keepers.contains(&session));
            let kept: Vec<Ino> = kept.map(|(ino, _)| *ino).collect();
            let releases: Vec<Ino> = kept.into_iter().filter(|_| self.random.one_in(3)).collect();
            for ino in &releases {
                self.model
                    .inodes
                    .get_mut(ino)
                    .unwrap()
                    .keepers
                    .remove(&session);
            }
            for ino in &knows {
                self.model
                    .inodes
                    .get_mut(ino)
                    .unwrap()
                    .keepers
                    .insert(session);
            }
            let beat = Beat {
                knows,
                releases,
                ..Beat::default()
            };
            self.receivers[session].beat(&*self.sessions[session], beat);
        }
        let before = self.model.inodes.len();
        self.model.sweep();
        let freed = before - self.model.inodes.len();
        assert_eq!(self.sessions[0].sweep(usize::MAX), Ok(freed as u64));
        self.versions
            .retain(|ino, _| self.model.inodes.contains_key(ino));
    }

    /// Performs a request, which has to fail with one of these errors, or to succeed.
    fn perform(
        &mut self,
        session: usize,
        request: Request,
        names: &[(Ino, Box<[u8]>)],
        errors: Errors,
    ) {
        let shown = format!("{request:?}");
        match self.sessions[session].perform(request) {
            Err(error) => assert!(errors.contains(&error), "{error} for {errors:?}: {shown}"),
            Ok(answer) => {
                assert!(errors.is_empty(), "success for {errors:?}: {shown}");
                self.receivers[session].did(names, &answer);
                let Answer::Done { touched, .. } = answer else {
                    panic!("refused: {shown}");
                };
                for (before, node) in touched {
                    let after = Version::of(&node.record);
                    let known = self.versions.insert(node.record.ino, after);
                    assert_eq!(before, known, "{shown}");
                    assert!(
                        before.is_none_or(|before| before.ctime < after.ctime),
                        "{shown}"
                    );
                }
            }
        }
    }

    /// Is everything as the model has it?
    fn compare(&mut self) {
        let meta = Arc::clone(&self.sessions[1]);
        let nodes = meta.walk(Ino(0), usize::MAX).unwrap();
        let inos: Vec<Ino> = nodes.iter().map(|node| node.record.ino).collect();
        assert_eq!(inos, self.model.inodes.keys().copied().collect::<Vec<_>>());
        for node in &nodes {
            self.compare_inode(&*meta, node);
        }
        assert_eq!(meta.check(false), Ok(vec![]));
        for (receiver, meta) in self.receivers.iter_mut().zip(&self.sessions) {
            let looked_at = receiver.looked_at;
            receiver.beat(&**meta, Beat::default());
            receiver.looked_at = looked_at;
            receiver.is_right(&**meta);
        }
    }

    fn compare_inode(&self, meta: &dyn Meta, node: &Node) {
        let record = &node.record;
        let (ino, inode) = (record.ino, &self.model.inodes[&record.ino]);
        let version = Version::of(record);
        assert_eq!(
            self.versions.get(&ino),
            Some(&version),
            "a change that no answer had: {ino}"
        );
        assert_eq!(record.kind, inode.kind);
        assert_eq!(
            (record.perm, record.uid),
            (inode.perm, inode.uid),
            "inode {ino}"
        );
        assert_eq!(record.nlink, self.model.nlink(ino), "inode {ino}");
        let rest = meta.load_rests(&[ino]).unwrap().remove(0);
        assert!(
            rest.xattrs
                .iter()
                .map(|(name, value)| (name, value))
                .eq(&inode.xattrs)
        );
        if inode.kind.is_dir() {
            let names = meta.read_names(ino, 0, usize::MAX, &[]).unwrap();
            assert!(names.windows(2).all(|pair| pair[0].cookie < pair[1].cookie));
            let names: BTreeMap<&[u8], Ino> = names.iter().map(|it| (&*it.name, it.ino)).collect();
            let expected: BTreeMap<&[u8], Ino> = self.model.children(ino).collect();
            assert_eq!(names, expected, "directory {ino}");
            assert_eq!(record.size, 32 * names.len() as u64);
            return;
        }
        let (generation, content) = meta.content(ino).unwrap();
        assert_eq!(generation, node.generation);
        assert_eq!(record.size, inode.size, "inode {ino}");
        assert_eq!(
            record.space.pages(record.size),
            Some(inode.pages.len() as u64),
            "inode {ino}"
        );
        let behind = inode.pages.keys().any(|page| page * PAGE >= record.size);
        assert_eq!(
            record.xattrs,
            behind || !inode.xattrs.is_empty(),
            "inode {ino}"
        );
        assert!(
            self.bytes(&content, record.size) == inode.content(),
            "content of {ino}"
        );
    }

    fn bytes(&self, content: &Content, size: u64) -> Vec<u8> {
        let mut whole = vec![0; size as usize];
        let mut put = |offset: u64, bytes: &[u8]| {
            let start = (offset as usize).min(whole.len());
            let end = (start + bytes.len()).min(whole.len());
            whole[start..end].copy_from_slice(&bytes[..end - start]);
        };
        match content {
            Content::Body { bytes, .. } => put(0, bytes),
            Content::Extents(extents) => {
                for it in extents.iter().filter(|it| it.object != 0) {
                    let start = it.object_offset as usize;
                    put(
                        it.offset,
                        &self.objects[&it.object][start..][..it.len as usize],
                    );
                }
            }
        }
        whole
    }
}

#[test]
fn random_requests_by_two_sessions_do_what_the_model_does() {
    let first = seed(1);
    for seed in first..first + effort().of(40, 400) {
        println!("seed {seed}");
        let database = Database::new(Settings::default());
        database.stop_clock(Time::new(1000, 0));
        let sessions = [database.session(), database.session()];
        agrees(sessions, seed, 600, || {
            database.pass(Duration::from_nanos(1))
        });
    }
}
