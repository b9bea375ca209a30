//! A store that others change below the file system over it, which is written through.

mod others;
mod state;
mod through;

use super::Call;
use holdfast_core::Store;
use holdfast_core::store::{
    Changes, Coherence, EntryRecord, Guarantees, InodeRecord, Lsn, NameRun, Rest, Shared,
    SpaceReport, SpaceRun, WholeDirectory, Writes,
};
use holdfast_types::{Caller, Errno, FileType, Ino, Result};
use others::Meanwhile;
use parking_lot::Mutex;
pub use state::SharedState;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// Cookies begin here, and are dealt anew with each reading: that is all that they promise.
const FIRST_COOKIE: u64 = 3;

/// A store that others change: a test does, below the file system over it. It deals numbers, and
/// holds what it told for a time, by a clock that the test moves.
#[derive(Debug)]
pub struct SharedStore {
    held: Mutex<SharedState>,
    coherence: Coherence,
    begun: Instant,
    millis: AtomicU64,
    calls: Mutex<BTreeMap<Call, u64>>,
    /// Inodes that were told of by their names, and not forgotten since.
    known: Mutex<BTreeSet<Ino>>,
    /// Does it tell nothing of what an operation touched, so that it is asked?
    silent: AtomicBool,
    /// Are its times so coarse that a change need not show?
    unsettled: AtomicBool,
    /// Does it hear of changes of every second inode only?
    half_deaf: AtomicBool,
    /// Until when it has proved that it hears of changes, in milliseconds. 0: it needs no proof.
    proved: AtomicU64,
    /// Does no notification arrive?
    is_cut_off: AtomicBool,
    above: Above,
    /// What another does after the next answer is made, and before it is told.
    meanwhile: Meanwhile,
}

/// What is told of changes.
#[derive(Default)]
struct Above(OnceLock<Weak<dyn Changes>>);

impl std::fmt::Debug for Above {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Above")
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
        held.make_unnamed(FileType::Directory, 0o755);
        if let Some(root) = held.inodes.get_mut(&Ino::ROOT) {
            root.meta().nlink = 2;
        }
        Self {
            held: Mutex::new(held),
            coherence,
            begun: Instant::now(),
            millis: AtomicU64::new(0),
            calls: Mutex::default(),
            known: Mutex::new(BTreeSet::from([Ino::ROOT])),
            silent: AtomicBool::new(false),
            unsettled: AtomicBool::new(false),
            half_deaf: AtomicBool::new(false),
            proved: AtomicU64::new(0),
            is_cut_off: AtomicBool::new(false),
            above: Above::default(),
            meanwhile: Meanwhile::default(),
        }
    }

    /// The core over it, as it is told of changes.
    #[must_use]
    pub fn above(&self) -> Option<Arc<dyn Changes>> {
        self.above.0.get().and_then(Weak::upgrade)
    }

    /// From now on it hears of changes of every second inode only.
    pub fn deafen(&self) {
        self.half_deaf.store(true, Ordering::SeqCst);
    }

    /// It has missed some changes, and says so.
    pub fn miss(&self) {
        self.tell(|above| above.all());
    }

    fn tell(&self, what: impl FnOnce(&dyn Changes)) {
        let Coherence::Notified { .. } = self.coherence else {
            return;
        };
        if self.is_cut_off.load(Ordering::SeqCst) {
            return;
        }
        if let Some(above) = self.above() {
            what(&*above);
        }
    }

    fn tell_of(&self, ino: Ino) {
        if !self.is_deaf_to(ino) {
            self.tell(|above| above.inode(ino, true));
        }
    }

    /// Tells that a name changed, and what it led to and leads to.
    fn tell_of_name(&self, (dir, name): (Ino, &[u8]), inos: &[Option<Ino>]) {
        self.tell(|above| {
            if !self.is_deaf_to(dir) {
                above.entry(dir, name);
            }
        });
        inos.iter().flatten().for_each(|ino| self.tell_of(*ino));
    }

    fn is_deaf_to(&self, ino: Ino) -> bool {
        self.half_deaf.load(Ordering::SeqCst) && ino.0 % 2 == 1
    }

    /// From now on it tells nothing of what an operation touched.
    pub fn silence(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }

    /// From now on a change need not show in a record.
    pub fn unsettle(&self) {
        self.unsettled.store(true, Ordering::SeqCst);
    }

    fn is_silent(&self) -> bool {
        self.silent.load(Ordering::SeqCst)
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
        self.calls.lock().values().sum()
    }

    /// How often each call was made.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<Call, u64> {
        self.calls.lock().clone()
    }

    /// Another makes a directory; tells its number.
    pub fn make_dir(&self, dir: Ino, name: &[u8]) -> Ino {
        let made = self.held.lock().make(dir, name, FileType::Directory);
        self.tell_of_name((dir, name), &[]);
        made
    }

    /// Another writes a file anew, or makes it; tells its number.
    pub fn write(&self, dir: Ino, name: &[u8], content: &[u8]) -> Ino {
        let mut held = self.held.lock();
        let was = held.child(dir, name);
        let ino = was.unwrap_or_else(|| held.make(dir, name, FileType::Regular));
        if let Ok(file) = held.file(ino) {
            file.pages.truncate(0);
            file.pages.write(0, content);
            file.meta().size = content.len() as u64;
        }
        held.changed(ino);
        drop(held);
        match was {
            Some(ino) => self.tell_of(ino),
            None => self.tell_of_name((dir, name), &[]),
        }
        ino
    }

    /// Another removes a name. What it led to is gone with its last one, unless it is open.
    pub fn remove(&self, dir: Ino, name: &[u8]) {
        let mut held = self.held.lock();
        let left = held.leave(dir, name);
        if let Some(ino) = left {
            held.tidy(ino, false);
        }
        drop(held);
        self.tell_of_name((dir, name), &[left]);
    }

    /// Another moves a file, over what is there.
    pub fn rename(&self, from: (Ino, &[u8]), to: (Ino, &[u8])) {
        let mut held = self.held.lock();
        let (source, target) = (held.child(from.0, from.1), held.child(to.0, to.1));
        let Some(ino) = source.filter(|_| source != target) else {
            return;
        };
        if let Some(gone) = held.leave(to.0, to.1) {
            held.tidy(gone, false);
        }
        held.leave(from.0, from.1);
        held.enter(to.0, to.1, ino);
        drop(held);
        self.tell_of_name(from, &[source]);
        self.tell_of_name(to, &[target]);
    }

    /// Inodes that it has to know because the core does, the root among them.
    #[must_use]
    pub fn known(&self) -> usize {
        self.known.lock().len()
    }

    /// Inodes that it holds.
    #[must_use]
    pub fn inodes(&self) -> usize {
        self.held.lock().inodes.len()
    }

    fn ask(&self, call: Call) -> parking_lot::MutexGuard<'_, SharedState> {
        *self.calls.lock().entry(call).or_default() += 1;
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
        }
    }

    fn writes(self: Arc<Self>) -> Writes {
        Writes::Through(self)
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        {
            let held = self.ask(Call::LoadInodes);
            let known = self.known.lock();
            let known = inos.iter().filter(|ino| known.contains(ino));
            found.extend(known.filter_map(|ino| held.record(*ino)));
        }
        self.answered();
        Ok(())
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        let held = self.ask(Call::LoadRests);
        for record in records {
            let inode = held.inodes.get(&record.ino).ok_or(Errno::ESTALE)?;
            let xattrs = inode.xattrs.iter();
            found.push(Rest {
                target: inode.target.clone(),
                xattrs: xattrs
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            });
        }
        drop(held);
        self.answered();
        Ok(())
    }

    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        let held = self.ask(Call::LookUp);
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
        drop(held);
        self.answered();
        Ok(())
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        let held = self.ask(Call::ReadNames);
        let inode = held.inodes.get(&dir).ok_or(Errno::ESTALE)?;
        let names = inode.names.iter().flatten();
        let cookies = (FIRST_COOKIE..).zip(names);
        for (cookie, (name, ino)) in cookies.filter(|(cookie, _)| *cookie > after).take(max) {
            let kind = held.record(*ino).map(|record| record.kind);
            run.push(name, cookie, *ino, kind.unwrap_or(FileType::Regular));
        }
        drop(held);
        self.answered();
        Ok(())
    }

    fn end_cookie(&self, _dir: Ino) -> Result<u64> {
        Ok(0)
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        let held = self.ask(Call::NextSpace);
        let inode = held.inodes.get(&ino).ok_or(Errno::ESTALE)?;
        let run = inode.pages.next_data(offset);
        Ok(run.map(|(start, len)| SpaceRun {
            start,
            len,
            written: true,
        }))
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        let held = self.ask(Call::ReadData);
        let inode = held.inodes.get(&ino).ok_or(Errno::ESTALE)?;
        inode.pages.read(offset, buf);
        drop(held);
        self.answered();
        Ok(())
    }

    fn commit(&self, _upto: Option<Lsn>) -> Result<()> {
        Ok(())
    }

    fn space(&self) -> Result<SpaceReport> {
        Ok(SpaceReport::default())
    }

    fn open_inode(&self, _caller: &Caller, ino: Ino, writes: bool) -> Result<bool> {
        if writes {
            self.ask(Call::Open).file(ino)?.open += 1;
        } else {
            self.held.lock().inode(ino)?.open += 1;
        }
        Ok(true)
    }

    fn close_inode(&self, ino: Ino, writes: bool) {
        // An inode that is held for reading costs no question, neither to begin nor to end.
        let mut held = match writes {
            true => self.ask(Call::Close),
            false => self.held.lock(),
        };
        if let Some(inode) = held.inodes.get_mut(&ino) {
            inode.open = inode.open.saturating_sub(1);
        }
        let is_known = self.known.lock().contains(&ino);
        held.tidy(ino, is_known);
    }

    fn flush_inode(&self, ino: Ino) -> Result<()> {
        self.ask(Call::Flush).inode(ino).map(drop)
    }

    fn sync_inode(&self, ino: Ino, _data_only: bool) -> Result<()> {
        self.ask(Call::Sync).inode(ino).map(drop)
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for SharedStore {
    fn coherence(&self) -> Coherence {
        self.coherence
    }

    fn attach(&self, changes: Weak<dyn Changes>) {
        // The first stays.
        let _ = self.above.0.set(changes);
    }

    fn hears_of(&self, record: &InodeRecord, _since: Instant) -> bool {
        matches!(self.coherence, Coherence::Notified { .. }) && !self.is_deaf_to(record.ino)
    }

    fn is_settled(&self, _record: &InodeRecord, _at: Instant) -> bool {
        !self.unsettled.load(Ordering::SeqCst)
    }

    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
    ) -> Vec<Option<WholeDirectory>> {
        let held = self.ask(Call::ReadDirectories);
        let read = |dir: &Ino| {
            let names = held.inodes.get(dir)?.names.as_ref()?;
            (names.len() <= most).then_some(())?;
            let mut whole = WholeDirectory {
                record: held.record(*dir)?,
                names: NameRun::default(),
                inodes: Vec::new(),
            };
            for (cookie, (name, ino)) in (FIRST_COOKIE..).zip(names) {
                let record = held.record(*ino)?;
                whole.names.push(name, cookie, *ino, record.kind);
                if inodes {
                    self.known.lock().insert(*ino);
                    whole.inodes.push(record);
                }
            }
            Some(whole)
        };
        let told = dirs.iter().map(read).collect();
        drop(held);
        self.answered();
        told
    }

    fn notified_until(&self) -> Option<Instant> {
        let millis = self.proved.load(Ordering::SeqCst);
        (millis > 0).then(|| self.begun + Duration::from_millis(millis))
    }

    fn is_another(&self, ino: Ino) {
        self.renumber(ino);
    }

    fn forgotten(&self, ino: Ino) {
        let mut held = self.held.lock();
        self.known.lock().remove(&ino);
        held.tidy(ino, false);
    }

    fn now(&self) -> Instant {
        self.begun + Duration::from_millis(self.millis.load(Ordering::SeqCst))
    }
}
