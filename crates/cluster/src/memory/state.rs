//! What a database holds.

use crate::meta::{Content, Message, NewInode, Node, Settings};
use holdfast_core::store::{EntryRecord, InodeRecord, StoredSpace, Version};
use holdfast_types::{Errno, FileType, Ino, Result, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The share of each name in the size of a directory.
const ENTRY_SIZE: u64 = 32;
/// The first number that is dealt.
const FIRST_NUMBER: u64 = 16;

/// All state of a database.
#[derive(Clone)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) inodes: BTreeMap<Ino, Inode>,
    pub(super) objects: BTreeMap<u64, Object>,
    pub(super) next_number: u64,
    /// All ranges that were dealt, with their sessions, by their first number.
    pub(super) deals: BTreeMap<u64, (Range<u64>, u64)>,
    pub(super) sessions: BTreeMap<u64, Session>,
    pub(super) next_session: u64,
    /// Topics, with the sessions that are interested.
    pub(super) interest: BTreeMap<Ino, BTreeSet<u64>>,
    /// How often the database was started.
    pub(super) starts: u64,
    /// Inodes without names, in the order in which they lost their last one. Inodes that never had
    /// a name are not among them.
    pub(super) nameless: BTreeMap<u64, Ino>,
    pub(super) next_nameless: u64,
}

/// A session.
#[derive(Clone)]
pub(super) struct Session {
    /// The time of its last beat.
    pub(super) last_beat: Time,
    pub(super) inbox: VecDeque<(u64, Message)>,
    pub(super) next_message: u64,
    /// How often its interest was struck.
    pub(super) struck: u64,
    /// What it is interested in.
    pub(super) topics: BTreeSet<Ino>,
    /// It has looked at the inodes without names up to this one.
    pub(super) looked_at: u64,
}

/// An inode with everything that belongs to it.
#[derive(Clone)]
pub(super) struct Inode {
    /// Without what follows from the rest: [`Inode::record`] is whole.
    pub(super) stored: InodeRecord,
    pub(super) generation: u64,
    pub(super) target: Option<Box<[u8]>>,
    pub(super) xattrs: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// The names of a directory.
    pub(super) names: BTreeMap<Box<[u8]>, Named>,
    /// The names by cookie.
    pub(super) cookies: BTreeMap<u64, Box<[u8]>>,
    pub(super) content: Content,
    /// When the content was changed last.
    pub(super) flushed: Time,
    /// Why the inode exists although no name leads to it.
    pub(super) nameless: Option<Nameless>,
    /// Sessions that use it, although no name leads to it.
    pub(super) keepers: BTreeSet<u64>,
}

/// An inode without names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nameless {
    /// It never had a name.
    Yet,
    /// It lost its last name, as the `n`th inode.
    Since(u64),
}

/// Where a name leads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) cookie: u64,
    pub(super) ino: Ino,
    pub(super) kind: FileType,
}

/// An object that was mapped at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) len: u64,
    /// Bytes that extents map.
    pub(super) live: u64,
    /// Since when no byte is mapped.
    pub(super) unmapped: Option<Time>,
    /// Is it being deleted? Then it is never mapped.
    pub(super) deleting: bool,
}

/// The clock of a database.
#[derive(Clone, Default)]
pub(super) struct Clock {
    stopped: Option<Time>,
    advance: Duration,
}

impl Clock {
    pub(super) fn now(&self) -> Time {
        let base = self
            .stopped
            .unwrap_or_else(|| Time::from(SystemTime::now()));
        later_by(base, self.advance)
    }

    pub(super) fn stop(&mut self, at: Time) {
        (self.stopped, self.advance) = (Some(at), Duration::ZERO);
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.advance += time;
    }
}

/// A time that is later by this much.
pub(super) fn later_by(time: Time, by: Duration) -> Time {
    let sum = by + Duration::from_nanos(time.subsec_nanos().into());
    let secs = i64::try_from(sum.as_secs()).unwrap_or(i64::MAX);
    Time::new(time.secs().saturating_add(secs), sum.subsec_nanos())
}

impl Inode {
    /// A new inode. Its content, if it is a regular file, is empty.
    pub(super) fn new(new: &NewInode, parent: Ino, now: Time) -> Self {
        let stored = InodeRecord {
            ino: new.ino,
            kind: new.kind,
            perm: new.perm,
            nlink: 0,
            uid: new.uid,
            gid: new.gid,
            rdev: new.rdev,
            size: new.target.as_ref().map_or(0, |target| target.len()) as u64,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            parent,
            xattrs: false,
            space: StoredSpace::AS_SIZE,
            flags: new.flags,
            project: new.project,
        };
        Self {
            stored,
            generation: 1,
            target: new.target.clone(),
            xattrs: new.xattrs.iter().cloned().collect(),
            names: BTreeMap::new(),
            cookies: BTreeMap::new(),
            content: Content::empty(),
            flushed: now,
            nameless: None,
            keepers: BTreeSet::new(),
        }
    }

    pub(super) fn is_dir(&self) -> bool {
        self.stored.kind.is_dir()
    }

    pub(super) fn is_file(&self) -> bool {
        self.stored.kind == FileType::Regular
    }

    pub(super) fn record(&self) -> InodeRecord {
        let mut record = self.stored.clone();
        if self.is_dir() {
            record.size = ENTRY_SIZE * self.names.len() as u64;
        }
        record.space = match self.is_file() {
            true => StoredSpace::of(self.content.space(), record.size),
            false => StoredSpace::AS_SIZE,
        };
        record.xattrs = !self.xattrs.is_empty() || self.content.is_behind(record.size);
        record
    }

    pub(super) fn version(&self) -> Version {
        Version::of(&self.record())
    }

    /// The inode as an answer has it.
    pub(super) fn node(&self, settings: &Settings) -> Node {
        let comes_along = match &self.content {
            Content::Body { bytes, .. } => bytes.len() as u64 <= settings.inline,
            Content::Extents(extents) => extents.is_empty(),
        };
        Node {
            record: self.record(),
            generation: self.generation,
            target: self.target.clone(),
            content: (self.is_file() && comes_along).then(|| self.content.clone()),
        }
    }

    /// The names with cookies greater than `after`, in cookie order.
    pub(super) fn entries(&self, after: u64) -> impl Iterator<Item = EntryRecord> {
        let from = after.checked_add(1);
        let cookies = from.map(|from| self.cookies.range(from..));
        cookies.into_iter().flatten().filter_map(|(cookie, name)| {
            let named = self.names.get(name)?;
            Some(EntryRecord {
                name: name.clone(),
                cookie: *cookie,
                ino: named.ino,
                kind: named.kind,
            })
        })
    }

    /// A name, which is free, leads to an inode.
    pub(super) fn insert(&mut self, name: &[u8], named: Named) {
        self.cookies.insert(named.cookie, name.into());
        self.names.insert(name.into(), named);
    }

    /// A name leads nowhere any more.
    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some(named) = self.names.remove(name) {
            self.cookies.remove(&named.cookie);
        }
    }
}

impl State {
    pub(super) fn new(settings: Settings) -> Self {
        let clock = Clock::default();
        let root = NewInode {
            perm: 0o755,
            ..NewInode::new(Ino::ROOT, FileType::Directory)
        };
        let mut root = Inode::new(&root, Ino::ROOT, clock.now());
        root.stored.nlink = 2;
        Self {
            settings,
            clock,
            inodes: BTreeMap::from([(Ino::ROOT, root)]),
            objects: BTreeMap::new(),
            next_number: FIRST_NUMBER,
            deals: BTreeMap::new(),
            sessions: BTreeMap::new(),
            next_session: 1,
            interest: BTreeMap::new(),
            starts: 1,
            nameless: BTreeMap::new(),
            next_nameless: 1,
        }
    }

    /// # Errors
    /// `ESTALE`: it does not exist.
    pub(super) fn inode(&self, ino: Ino) -> Result<&Inode> {
        self.inodes.get(&ino).ok_or(Errno::ESTALE)
    }

    /// # Errors
    /// `ESTALE`: it does not exist. `ENOTDIR`.
    pub(super) fn directory(&self, ino: Ino) -> Result<&Inode> {
        let dir = self.inode(ino)?;
        if dir.is_dir() {
            Ok(dir)
        } else {
            Err(Errno::ENOTDIR)
        }
    }

    /// A directory that can get names.
    ///
    /// # Errors
    /// Those of [`directory`](Self::directory); `ENOENT`: it was removed.
    pub(super) fn named_directory(&self, ino: Ino) -> Result<&Inode> {
        let dir = self.directory(ino)?;
        if dir.stored.nlink == 0 {
            return Err(Errno::ENOENT);
        }
        Ok(dir)
    }

    pub(super) fn node(&self, ino: Ino) -> Option<Node> {
        let inode = self.inodes.get(&ino)?;
        Some(inode.node(&self.settings))
    }

    /// Is this inode another, or a directory above that one?
    pub(super) fn is_above(&self, ino: Ino, mut dir: Ino) -> bool {
        // No path is longer than there are inodes: damage must not make this endless.
        for _ in 0..=self.inodes.len() {
            if dir == ino {
                return true;
            }
            match self.inodes.get(&dir) {
                Some(inode) if dir != Ino::ROOT => dir = inode.stored.parent,
                _ => return false,
            }
        }
        true
    }
}
