//! The database and the objects as a [`Store`] of the core.

use crate::answers::Answers;
use crate::content::{FileOptions, Files};
use crate::listings::Listings;
use crate::meta::{Meta, Node, Settings};
use crate::numbers::Numbers;
use crate::objects::Objects;
use crate::recent::Recent;
use crate::session::Session;
use crate::sweep::Sweep;
use holdfast_core::Memory;
use holdfast_core::budget::Member;
use holdfast_core::store::{
    EntryRecord, Failure, Guarantees, InodeRecord, Lsn, NameRun, Rest, Shared, SpaceReport,
    SpaceRun, Store, WalkInodes, Writes,
};
use holdfast_types::{Caller, Errno, FileType, Ino, Result};
use std::io;
use std::sync::{Arc, Weak};

/// A tree of several machines, as one of them mounts it. The session ends with it.
pub struct ClusterStore {
    pub(crate) meta: Arc<dyn Meta>,
    pub(crate) settings: Settings,
    pub(crate) answers: Answers,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) listings: Arc<Listings>,
    failure: Arc<Failure>,
    pub(crate) session: Session,
    sweep: Sweep,
}

impl ClusterStore {
    /// A store over a session with the database, and the objects of the same file system.
    ///
    /// # Errors
    /// Those of starting a thread, and of the directory of the cache on disk.
    pub fn new(
        meta: Arc<dyn Meta>,
        objects: Arc<dyn Objects>,
        options: FileOptions,
    ) -> io::Result<Arc<Self>> {
        let numbers = Numbers::new(Arc::clone(&meta));
        let recent = Arc::new(Recent::new());
        let sweep = Sweep::start(
            Arc::clone(&meta),
            Arc::clone(&objects),
            Arc::clone(&numbers),
        )?;
        let files = Files::new(Arc::clone(&meta), objects, Arc::clone(&numbers), options)?;
        let failure = Arc::default();
        let session = Session::start(
            Arc::clone(&meta),
            Arc::clone(&files),
            Arc::clone(&numbers),
            Arc::clone(&failure),
        )?;
        Ok(Arc::new(Self {
            settings: meta.settings(),
            answers: Answers { recent, files },
            meta,
            numbers,
            listings: Arc::new(Listings::new()),
            failure,
            session,
            sweep,
        }))
    }

    /// Does now what any client does for all from time to time: ends silent sessions, frees inodes,
    /// moves bodies into objects, and deletes objects that nothing maps.
    ///
    /// # Errors
    /// Those of the database and of the objects. What is left is done later.
    pub fn sweep(&self) -> Result<()> {
        self.sweep.round()
    }

    /// Sends a beat now. Then the core has been notified of all changes by others up to now, as far
    /// as it [watches](Shared::hears_of) them.
    ///
    /// # Errors
    /// Those of [`Meta::beat`].
    pub fn beat(&self) -> Result<()> {
        self.session.beat()
    }

    /// The answer to a question that fails with `ESTALE` only if the session was ended: then
    /// nothing that waits here can be written any more.
    pub(crate) fn unless_ended<T>(&self, answer: Result<T>) -> Result<T> {
        answer.inspect_err(|error| {
            if *error == Errno::ESTALE {
                self.failure.close_with(Errno::ESTALE);
            }
        })
    }

    fn load(&self, inos: &[Ino]) -> Result<Vec<Node>> {
        let topics = self.session.topics();
        self.unless_ended(topics.ask(|topics| self.meta.load(inos, topics)))
    }

    /// A node of this inode that the database answered, without its content.
    ///
    /// # Errors
    /// `ESTALE`: it does not exist.
    pub(crate) fn node(&self, ino: Ino) -> Result<Node> {
        if let Some(node) = self.answers.recent.node(ino) {
            return Ok(node);
        }
        let node = self.load(&[ino])?.pop().ok_or(Errno::ESTALE)?;
        self.answers.take_in(&node);
        Ok(node)
    }

    /// Opens a regular file for writing.
    ///
    /// # Errors
    /// `ESTALE`: it does not exist. `EINVAL`: it is no regular file.
    pub(crate) fn open_to_write(&self, ino: Ino) -> Result<()> {
        let node = self.node(ino)?;
        if node.record.kind != FileType::Regular {
            return Err(Errno::EINVAL);
        }
        self.answers.files.open(&node);
        Ok(())
    }
}

impl Store for ClusterStore {
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

    fn failure(&self) -> Arc<Failure> {
        Arc::clone(&self.failure)
    }

    fn join(&self, memory: &Arc<Memory>) {
        self.answers.files.join(memory);
        memory.join(Arc::downgrade(&self.answers.recent) as Weak<dyn Member>);
        memory.join(Arc::downgrade(&self.listings) as Weak<dyn Member>);
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        let nodes = self.load(inos)?;
        found.extend(nodes.iter().map(|node| self.answers.take_in(node)));
        Ok(())
    }

    /// Targets that came along with an answer cost no request.
    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        let known = |record: &InodeRecord| {
            let target = match record.kind {
                FileType::Symlink => Some(self.answers.recent.target(record.ino)?),
                _ => None,
            };
            let xattrs = Vec::new();
            (!record.xattrs).then_some(Rest { target, xattrs })
        };
        let known: Vec<Option<Rest>> = records.iter().map(known).collect();
        let unknown = records.iter().zip(&known);
        let unknown = unknown.filter(|(_, rest)| rest.is_none());
        let unknown: Vec<Ino> = unknown.map(|(record, _)| record.ino).collect();
        let loaded = match unknown.is_empty() {
            true => Vec::new(),
            false => self.meta.load_rests(&unknown)?,
        };
        if loaded.len() != unknown.len() {
            return Err(Errno::EIO);
        }
        let mut loaded = loaded.into_iter();
        found.extend(
            known
                .into_iter()
                .flat_map(|rest| rest.or_else(|| loaded.next())),
        );
        Ok(())
    }

    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        let topics = self.session.topics();
        let answers = topics.ask(|topics| self.meta.look_up(dir, names, topics))?;
        if answers.len() != names.len() {
            return Err(Errno::EIO);
        }
        found.extend(answers.into_iter().map(|answer| {
            let answer = answer?;
            let record = answer.node.map(|node| self.answers.take_in(&node));
            Some((answer.entry, record))
        }));
        Ok(())
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        self.listings.read(dir, after, max, run, |after, max| {
            let topics = self.session.topics();
            topics.ask(|topics| self.meta.read_names(dir, after, max, topics))
        })
    }

    /// The core allocates the cookies of names.
    fn end_cookie(&self, _dir: Ino) -> Result<u64> {
        Ok(0)
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        self.answers.files.next_space(ino, offset)
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.answers.files.read(ino, offset, buf)
    }

    fn space(&self) -> Result<SpaceReport> {
        let usage = self.unless_ended(self.meta.usage())?;
        Ok(SpaceReport {
            pages_used: usage.pages,
            inodes_used: usage.inodes,
            ..SpaceReport::default()
        })
    }

    fn commit(&self, _upto: Option<Lsn>) -> Result<()> {
        self.answers.files.sync_all()
    }

    fn open_inode(&self, _caller: &Caller, ino: Ino, writes: bool) -> Result<bool> {
        // A number is never used twice, and an inode without a name stays while it is known here.
        if writes {
            self.open_to_write(ino)?;
        }
        Ok(writes)
    }

    fn close_inode(&self, ino: Ino, writes: bool) {
        if writes {
            self.answers.files.close(ino);
        }
    }

    fn flush_inode(&self, ino: Ino) -> Result<()> {
        self.answers.files.flush(ino)
    }

    /// Changes of names and of clean inodes are durable when they are answered.
    fn sync_inode(&self, ino: Ino, _data_only: bool) -> Result<()> {
        self.answers.files.flush(ino)
    }

    fn walk(&self) -> Option<&dyn WalkInodes> {
        Some(self)
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}
