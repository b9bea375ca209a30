//! Stores for tests: one that keeps everything in plain maps, and wrappers round any store that
//! fail, wait or remember.
//!
//! A wrapper is a [`Wrapped`] store with a [`Hook`] that sees every call before the store does.

mod faulty;
mod model;
mod pages;
mod recording;
mod shared;
mod slow;

pub use faulty::{Fault, Faults, FaultyStore};
pub use model::ModelStore;
pub use recording::{Noted, Record, Recorded, RecordingStore};
pub use shared::{SharedState, SharedStore};
pub use slow::{Latency, SlowStore};

use holdfast_core::store::{
    Behind, Change, Done, EntryRecord, Failure, Grant, Guarantees, InodeRecord, Intent, Lsn,
    NameRun, Operation, PageOf, Rest, Shared, SharedPages, Space, SpaceReport, SpaceRun, Through,
    WalkInodes, Writes,
};
use holdfast_core::{Memory, Store};
use holdfast_types::{Caller, Errno, Ino, Result};
use std::sync::Arc;

/// The calls of [`Store`] that can fail or take time. The last four are counted by
/// [`SharedStore::calls`] only.
#[expect(missing_docs, reason = "each is the method of its name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    LoadInodes,
    LoadRests,
    LookUp,
    ReadNames,
    EndCookie,
    NextSpace,
    ReadData,
    Reserve,
    Apply,
    Perform,
    Open,
    Commit,
    Walk,
    LastIno,
    Space,
    Close,
    Flush,
    Sync,
    ReadDirectories,
}

/// What a wrapper does at each call.
pub trait Hook: Send + Sync + 'static {
    /// Before the call reaches the store; an error keeps it away.
    ///
    /// # Errors
    /// Whatever the call shall answer.
    fn before(&self, call: Call) -> Result<()>;

    /// Before the call that brings this inode; an error keeps it away.
    ///
    /// # Errors
    /// Whatever the call shall answer.
    fn loads(&self, _ino: Ino) -> Result<()> {
        Ok(())
    }

    /// After the store has read bytes of a file.
    fn has_read(&self, _ino: Ino, _offset: u64) {}

    /// After the store accepted a batch.
    fn applied(&self, _batch: &[Change<'_>]) {}

    /// After the store has made everything up to a point durable (`None`: all of it).
    fn committed(&self, _upto: Option<Lsn>) {}

    /// After a store that is written through has made an inode durable.
    fn synced(&self, _ino: Ino) {}

    /// After a store that is written through has done what it was asked for.
    fn performed(&self, _operation: &Operation<'_>) {}
}

/// A store with a hook before every call.
pub struct Wrapped<H> {
    inner: Arc<dyn Store>,
    /// The same, as it is changed.
    writes: Writes,
    hook: H,
}

impl<H: Hook> Wrapped<H> {
    /// Puts the hook before the store.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, hook: H) -> Arc<Self> {
        Arc::new(Self {
            writes: Arc::clone(&inner).writes(),
            inner,
            hook,
        })
    }

    fn behind(&self) -> Result<&dyn Behind> {
        match &self.writes {
            Writes::Behind(behind) => Ok(&**behind),
            Writes::Through(_) => Err(Errno::EROFS),
        }
    }

    fn through(&self) -> Result<&dyn Through> {
        match &self.writes {
            Writes::Behind(_) => Err(Errno::EROFS),
            Writes::Through(through) => Ok(&**through),
        }
    }

    /// The hook, to change what it does or to ask what it saw.
    #[must_use]
    pub const fn hook(&self) -> &H {
        &self.hook
    }
}

impl<H> std::fmt::Debug for Wrapped<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wrapped").finish_non_exhaustive()
    }
}

impl<H: Hook> Store for Wrapped<H> {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn writes(self: Arc<Self>) -> Writes {
        match self.writes {
            Writes::Behind(_) => Writes::Behind(self),
            Writes::Through(_) => Writes::Through(self),
        }
    }

    fn failure(&self) -> Arc<Failure> {
        self.inner.failure()
    }

    fn join(&self, memory: &Arc<Memory>) {
        self.inner.join(memory);
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        self.hook.before(Call::LoadInodes)?;
        inos.iter().try_for_each(|&ino| self.hook.loads(ino))?;
        self.inner.load_inodes(inos, found)
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        self.hook.before(Call::LoadRests)?;
        let mut inos = records.iter().map(|record| record.ino);
        inos.try_for_each(|ino| self.hook.loads(ino))?;
        self.inner.load_rests(records, found)
    }

    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        self.hook.before(Call::LookUp)?;
        let before = found.len();
        self.inner.look_up(dir, names, found)?;
        for (_, inode) in found[before..].iter_mut().flatten() {
            inode.take_if(|inode| self.hook.loads(inode.ino).is_err());
        }
        Ok(())
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        self.hook.before(Call::ReadNames)?;
        self.inner.read_names(dir, after, max, run)
    }

    fn end_cookie(&self, dir: Ino) -> Result<u64> {
        self.hook.before(Call::EndCookie)?;
        self.inner.end_cookie(dir)
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        self.hook.before(Call::NextSpace)?;
        self.inner.next_space(ino, offset)
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.hook.before(Call::ReadData)?;
        self.inner.read_data(ino, offset, buf)?;
        self.hook.has_read(ino, offset);
        Ok(())
    }

    fn space(&self) -> Result<SpaceReport> {
        self.hook.before(Call::Space)?;
        self.inner.space()
    }

    fn commit(&self, upto: Option<Lsn>) -> Result<()> {
        self.hook.before(Call::Commit)?;
        self.inner.commit(upto)?;
        self.hook.committed(upto);
        Ok(())
    }

    fn open_inode(&self, caller: &Caller, ino: Ino, writes: bool) -> Result<bool> {
        if matches!(self.writes, Writes::Through(_)) {
            self.hook.before(Call::Open)?;
        }
        self.inner.open_inode(caller, ino, writes)
    }

    fn close_inode(&self, ino: Ino, writes: bool) {
        self.inner.close_inode(ino, writes);
    }

    fn flush_inode(&self, ino: Ino) -> Result<()> {
        self.inner.flush_inode(ino)
    }

    fn sync_inode(&self, ino: Ino, data_only: bool) -> Result<()> {
        if matches!(self.writes, Writes::Behind(_)) {
            return self.commit(None);
        }
        self.hook.before(Call::Commit)?;
        self.inner.sync_inode(ino, data_only)?;
        self.hook.synced(ino);
        Ok(())
    }

    fn walk(&self) -> Option<&dyn WalkInodes> {
        self.inner.walk().map(|_| self as &dyn WalkInodes)
    }

    fn pages(&self) -> Option<&dyn SharedPages> {
        self.inner.pages().map(|_| self as &dyn SharedPages)
    }

    fn shared(&self) -> Option<&dyn Shared> {
        self.inner.shared()
    }
}

impl<H: Hook> Behind for Wrapped<H> {
    fn reserve(&self, intent: &Intent) -> Result<Grant> {
        self.hook.before(Call::Reserve)?;
        self.behind()?.reserve(intent)
    }

    fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        self.hook.before(Call::Reserve).ok()?;
        self.behind().ok()?.reserve_at_once(intent)
    }

    fn give_back(&self, held: Grant) {
        if let Ok(behind) = self.behind() {
            behind.give_back(held);
        }
    }

    fn release(&self, space: Space) {
        if let Ok(behind) = self.behind() {
            behind.release(space);
        }
    }

    fn apply(&self, held: &mut Grant, batch: &[Change<'_>]) -> Result<Lsn> {
        self.hook.before(Call::Apply)?;
        let lsn = self.behind()?.apply(held, batch)?;
        self.hook.applied(batch);
        Ok(lsn)
    }

    fn last_ino(&self) -> Result<Ino> {
        self.hook.before(Call::LastIno)?;
        self.behind()?.last_ino()
    }
}

impl<H: Hook> Through for Wrapped<H> {
    fn perform(&self, caller: &Caller, operation: &Operation<'_>) -> Result<Done> {
        self.hook.before(Call::Perform)?;
        let done = self.through()?.perform(caller, operation)?;
        self.hook.performed(operation);
        Ok(done)
    }
}

impl<H: Hook> WalkInodes for Wrapped<H> {
    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        self.hook.before(Call::Walk)?;
        let before = run.len();
        let walk = self.inner.walk().ok_or(Errno::EOPNOTSUPP)?;
        walk.walk(after, max, run)?;
        let mut inos = run[before..].iter().map(|record| record.ino);
        inos.try_for_each(|ino| self.hook.loads(ino))
    }

    fn split(&self, parts: usize) -> Result<Vec<Ino>> {
        self.inner.walk().ok_or(Errno::EOPNOTSUPP)?.split(parts)
    }
}

impl<H: Hook> SharedPages for Wrapped<H> {
    fn apply_written(
        &self,
        held: &mut Grant,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Result<Lsn> {
        self.hook.before(Call::Apply)?;
        let pages = self.inner.pages().ok_or(Errno::EOPNOTSUPP)?;
        let lsn = pages.apply_written(held, batch, page)?;
        self.hook.applied(batch);
        Ok(lsn)
    }
}
