//! A store that others change below the file system over it.

use holdfast_core::Store;
use holdfast_core::store::{
    Coherence, EntryRecord, Guarantees, InodeRecord, NameRun, ReadOnly, Rest, Shared, SpaceReport,
    SpaceRun, Stamp, StoredSpace, Writes,
};
use holdfast_types::{Errno, FileFlags, FileType, Ino, Result, Time};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Cookies begin here, and are dealt anew with each reading: that is all that they promise.
const FIRST_COOKIE: u64 = 3;

/// A store that others change: a test does, below the file system over it. It deals numbers, holds what it told for a
/// time, by a clock that the test moves, and cannot be changed from above.
#[derive(Debug)]
pub struct SharedStore {
    held: Mutex<SharedState>,
    coherence: Coherence,
    begun: Instant,
    millis: AtomicU64,
    asked: AtomicU64,
    /// Inodes that were told of by their names, and not forgotten since.
    known: Mutex<BTreeSet<Ino>>,
}

/// What a [`SharedStore`] holds, at one time.
#[derive(Clone, Debug, Default)]
pub struct SharedState {
    inodes: BTreeMap<Ino, Inode>,
    last: u64,
    /// Grows with each change: the times of inodes are made of it.
    changes: i64,
}

#[derive(Clone, Debug)]
struct Inode {
    parent: Ino,
    content: Vec<u8>,
    /// `None`: it is no directory.
    names: Option<BTreeMap<Box<[u8]>, Ino>>,
    changed: i64,
}

impl SharedState {
    /// The number that a name of a directory leads to.
    #[must_use]
    pub fn child(&self, dir: Ino, name: &[u8]) -> Option<Ino> {
        let names = self.inodes.get(&dir)?.names.as_ref()?;
        names.get(name).copied()
    }

    /// The bytes of a file; `None`: there is none of this number.
    #[must_use]
    pub fn content(&self, ino: Ino) -> Option<&[u8]> {
        self.inodes.get(&ino).map(|inode| &*inode.content)
    }

    /// The names of a directory, in order.
    #[must_use]
    pub fn names(&self, dir: Ino) -> Vec<Box<[u8]>> {
        let names = self.inodes.get(&dir).and_then(|dir| dir.names.as_ref());
        names.map_or_else(Vec::new, |names| names.keys().cloned().collect())
    }

    fn make(&mut self, dir: Ino, name: &[u8], names: Option<BTreeMap<Box<[u8]>, Ino>>) -> Ino {
        self.last += 1;
        let ino = Ino(self.last);
        self.changes += 1;
        let inode = Inode {
            parent: dir,
            content: Vec::new(),
            names,
            changed: self.changes,
        };
        self.inodes.insert(ino, inode);
        self.enter(dir, name, Some(ino));
        ino
    }

    /// Lets a name lead to an inode, or nowhere; what it led to is gone.
    fn enter(&mut self, dir: Ino, name: &[u8], ino: Option<Ino>) {
        self.changes += 1;
        let changed = self.changes;
        let Some(parent) = self.inodes.get_mut(&dir) else {
            return;
        };
        parent.changed = changed;
        let names = parent.names.get_or_insert_default();
        let was = match ino {
            Some(ino) => names.insert(name.into(), ino),
            None => names.remove(name),
        };
        if let Some(was) = was {
            self.inodes.remove(&was);
        }
    }

    fn record(&self, ino: Ino) -> Option<InodeRecord> {
        let inode = self.inodes.get(&ino)?;
        let time = Time(inode.changed);
        let kind = match inode.names {
            Some(_) => FileType::Directory,
            None => FileType::Regular,
        };
        Some(InodeRecord {
            ino,
            kind,
            perm: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: inode.content.len() as u64,
            atime: time,
            mtime: time,
            ctime: time,
            btime: Time(0),
            parent: inode.parent,
            xattrs: false,
            space: StoredSpace::AS_SIZE,
            flags: FileFlags::empty(),
            project: 0,
        })
    }
}

impl SharedStore {
    /// A store with an empty root directory.
    #[must_use]
    pub fn new(coherence: Coherence) -> Self {
        let mut held = SharedState {
            last: Ino::ROOT.0 - 1,
            ..SharedState::default()
        };
        held.make(Ino::ROOT, b"", Some(BTreeMap::new()));
        if let Some(root) = held.inodes.get_mut(&Ino::ROOT) {
            root.names = Some(BTreeMap::new());
        }
        Self {
            held: Mutex::new(held),
            coherence,
            begun: Instant::now(),
            millis: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            known: Mutex::new(BTreeSet::from([Ino::ROOT])),
        }
    }

    /// Lets time pass.
    pub fn pass(&self, millis: u64) {
        self.millis.fetch_add(millis, Ordering::SeqCst);
    }

    /// A copy of all that it holds now.
    #[must_use]
    pub fn state(&self) -> SharedState {
        self.held.lock().clone()
    }

    /// How often it was asked for something.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// Another makes a directory; tells its number.
    pub fn make_dir(&self, dir: Ino, name: &[u8]) -> Ino {
        self.held.lock().make(dir, name, Some(BTreeMap::new()))
    }

    /// Another writes a file anew, or makes it; tells its number.
    pub fn write(&self, dir: Ino, name: &[u8], content: &[u8]) -> Ino {
        let mut held = self.held.lock();
        let ino = match held.child(dir, name) {
            Some(ino) => ino,
            None => held.make(dir, name, None),
        };
        held.changes += 1;
        let changed = held.changes;
        if let Some(inode) = held.inodes.get_mut(&ino) {
            (inode.content, inode.changed) = (content.into(), changed);
        }
        ino
    }

    /// Another removes a name and what it leads to.
    pub fn remove(&self, dir: Ino, name: &[u8]) {
        self.held.lock().enter(dir, name, None);
    }

    /// Another moves a file, over what is there.
    pub fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8])) {
        let mut held = self.held.lock();
        if from == to {
            return;
        }
        if let Some(ino) = held.child(from.0, from.1) {
            if let Some(names) = held
                .inodes
                .get_mut(&from.0)
                .and_then(|it| it.names.as_mut())
            {
                names.remove(from.1);
            }
            held.enter(to.0, to.1, Some(ino));
            held.changes += 1;
            let changed = held.changes;
            for ino in [from.0, ino] {
                if let Some(inode) = held.inodes.get_mut(&ino) {
                    inode.changed = changed;
                }
            }
        }
    }

    /// Inodes that it has to know because the core does, the root among them.
    #[must_use]
    pub fn known(&self) -> usize {
        self.known.lock().len()
    }

    fn ask(&self) -> parking_lot::MutexGuard<'_, SharedState> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.held.lock()
    }
}

impl Store for SharedStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            pinned: false,
            blocks: true,
            small: 0,
            frees: true,
            times_and_flags: true,
        }
    }

    fn writes(self: Arc<Self>) -> Writes {
        Writes::Behind(Arc::new(ReadOnly))
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        let held = self.ask();
        let known = self.known.lock();
        let known = inos.iter().filter(|ino| known.contains(ino));
        found.extend(known.filter_map(|ino| held.record(*ino)));
        Ok(())
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        found.extend(records.iter().map(|_| Rest::default()));
        Ok(())
    }

    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        let held = self.ask();
        found.extend(names.iter().map(|name| {
            let record = held.record(held.child(dir, name)?)?;
            self.known.lock().insert(record.ino);
            let entry = EntryRecord {
                name: (*name).into(),
                cookie: 0,
                ino: record.ino,
                kind: record.kind,
            };
            Some((entry, Some(record)))
        }));
        Ok(())
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        let held = self.ask();
        let inode = held.inodes.get(&dir).ok_or(Errno::ESTALE)?;
        let names = inode.names.iter().flatten();
        let cookies = (FIRST_COOKIE..).zip(names);
        for (cookie, (name, ino)) in cookies.filter(|(cookie, _)| *cookie > after).take(max) {
            let kind = held.record(*ino).map(|record| record.kind);
            run.push(name, cookie, *ino, kind.unwrap_or(FileType::Regular));
        }
        Ok(())
    }

    fn end_cookie(&self, _dir: Ino) -> Result<u64> {
        Ok(0)
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        let held = self.ask();
        let len = held.content(ino).ok_or(Errno::ESTALE)?.len() as u64;
        Ok((offset < len).then_some(SpaceRun {
            start: offset,
            len: len - offset,
            written: true,
        }))
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        let held = self.ask();
        let content = held.content(ino).ok_or(Errno::ESTALE)?;
        let from = content.len().min(offset as usize);
        let len = buf.len().min(content.len() - from);
        buf[..len].copy_from_slice(&content[from..from + len]);
        buf[len..].fill(0);
        Ok(())
    }

    fn commit(&self, _upto: Option<Stamp>) -> Result<()> {
        Ok(())
    }

    fn space(&self) -> Result<SpaceReport> {
        Ok(SpaceReport::default())
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for SharedStore {
    fn coherence(&self) -> Coherence {
        self.coherence
    }

    fn forgotten(&self, ino: Ino) {
        self.known.lock().remove(&ino);
    }

    fn now(&self) -> Instant {
        self.begun + Duration::from_millis(self.millis.load(Ordering::SeqCst))
    }
}
