//! One session of a database in memory.

use super::state::State;
use crate::meta::{
    Answer, Beat, BeatAnswer, ClientInfo, Content, Directory, Found, Meta, Node, Request, Settings,
    Staged, Usage,
};
use holdfast_core::store::{EntryRecord, Rest};
use holdfast_types::{Errno, Ino, Result};
use parking_lot::{Mutex, MutexGuard};
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What sessions share.
pub(super) struct Tables {
    settings: Settings,
    pub(super) state: Mutex<State>,
    pub(super) unreachable: AtomicBool,
}

impl Tables {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            state: Mutex::new(State::new(settings.clone())),
            settings,
            unreachable: AtomicBool::new(false),
        }
    }
}

/// A session.
pub(super) struct MemorySession {
    database: Arc<Tables>,
    number: u64,
}

impl MemorySession {
    pub(super) fn begin(database: Arc<Tables>) -> Self {
        let number = database.state.lock().begin();
        Self { database, number }
    }

    /// The state, for a question of this session.
    ///
    /// # Errors
    /// `ESTALE`: the session has ended. `EIO`: the database is unreachable.
    fn ask(&self, topics: &[Ino]) -> Result<MutexGuard<'_, State>> {
        if self.database.unreachable.load(Ordering::SeqCst) {
            return Err(Errno::EIO);
        }
        let mut state = self.database.state.lock();
        state.subscribe(self.number, topics)?;
        Ok(state)
    }
}

impl Meta for MemorySession {
    fn settings(&self) -> Settings {
        self.database.settings.clone()
    }

    fn perform(&self, request: Request) -> Result<Answer> {
        self.ask(&[])?.perform(self.number, &request)
    }

    fn look_up(&self, dir: Ino, names: &[&[u8]], topics: &[Ino]) -> Result<Vec<Option<Found>>> {
        let state = self.ask(topics)?;
        let dir = state.directory(dir)?;
        let find = |name: &&[u8]| {
            let named = dir.names.get(*name)?;
            Some(Found {
                entry: EntryRecord {
                    name: (*name).into(),
                    cookie: named.cookie,
                    ino: named.ino,
                    kind: named.kind,
                },
                node: state.node(named.ino),
            })
        };
        Ok(names.iter().map(find).collect())
    }

    fn load(&self, inos: &[Ino], topics: &[Ino]) -> Result<Vec<Node>> {
        let state = self.ask(topics)?;
        Ok(inos.iter().filter_map(|ino| state.node(*ino)).collect())
    }

    fn load_rests(&self, inos: &[Ino]) -> Result<Vec<Rest>> {
        let state = self.ask(&[])?;
        let rest = |ino: &Ino| {
            let inode = state.inode(*ino)?;
            let xattrs = inode.xattrs.iter();
            Ok(Rest {
                target: inode.target.clone(),
                xattrs: xattrs.map(|(n, v)| (n.clone(), v.clone())).collect(),
            })
        };
        inos.iter().map(rest).collect()
    }

    fn read_names(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        topics: &[Ino],
    ) -> Result<Vec<EntryRecord>> {
        let state = self.ask(topics)?;
        Ok(state.directory(dir)?.entries(after).take(max).collect())
    }

    fn read_directories(
        &self,
        dirs: &[Ino],
        most: usize,
        inodes: bool,
        topics: &[Ino],
    ) -> Result<Vec<Option<Directory>>> {
        let state = self.ask(topics)?;
        let read = |ino: &Ino| {
            let dir = state.directory(*ino).ok()?;
            if dir.names.len() > most {
                return None;
            }
            let mut inos: Vec<Ino> = dir.names.values().map(|named| named.ino).collect();
            inos.sort_unstable();
            inos.dedup();
            Some(Directory {
                node: dir.node(&state.settings),
                names: dir.entries(0).collect(),
                inodes: match inodes {
                    true => inos.iter().filter_map(|ino| state.node(*ino)).collect(),
                    false => Vec::new(),
                },
            })
        };
        Ok(dirs.iter().map(read).collect())
    }

    fn content(&self, ino: Ino) -> Result<(u64, Content)> {
        let state = self.ask(&[])?;
        let inode = state.inode(ino)?;
        Ok((inode.generation, inode.content.clone()))
    }

    fn walk(&self, after: Ino, max: usize) -> Result<Vec<Node>> {
        let state = self.ask(&[])?;
        let inodes = state
            .inodes
            .range((Bound::Excluded(after), Bound::Unbounded));
        let inodes = inodes.map(|(_, inode)| inode.node(&state.settings));
        Ok(inodes.take(max).collect())
    }

    fn usage(&self) -> Result<Usage> {
        Ok(self.ask(&[])?.usage())
    }

    fn deal(&self, count: u64) -> Result<Range<u64>> {
        self.ask(&[])?.deal(self.number, count)
    }

    fn beat(&self, beat: &Beat) -> Result<BeatAnswer> {
        self.ask(&[])?.beat(self.number, beat)
    }

    fn end(&self) -> Result<()> {
        self.ask(&[])?.end(self.number)
    }

    fn clients(&self) -> Result<Vec<ClientInfo>> {
        Ok(self.ask(&[])?.clients(self.number))
    }

    fn fence(&self, session: u64) -> Result<()> {
        self.ask(&[])?.end(session)
    }

    fn sweep(&self, max: usize) -> Result<u64> {
        Ok(self.ask(&[])?.sweep(max))
    }

    fn staged(&self, max: usize) -> Result<Vec<Staged>> {
        Ok(self.ask(&[])?.staged(max))
    }

    fn deletable(&self, listed: &[u64], max: usize) -> Result<Vec<u64>> {
        Ok(self.ask(&[])?.deletable(listed, max))
    }

    fn deleted(&self, objects: &[u64]) -> Result<()> {
        self.ask(&[])?.deleted(objects);
        Ok(())
    }

    fn check(&self, repair: bool) -> Result<Vec<String>> {
        Ok(self.ask(&[])?.check(repair))
    }
}
