//! Stores for tests: one that keeps everything in plain maps, and wrappers round any store that
//! fail, wait or remember.
//!
//! A wrapper is a [`Wrapped`] store with a [`Hook`] that sees every call before the store does.

mod change;
mod faulty;
mod model;
mod pages;
mod recording;
mod slow;

pub use change::OwnedChange;
pub use faulty::{Fault, Faults, FaultyStore};
pub use model::ModelStore;
pub use recording::{Record, Recorded, RecordingStore};
pub use slow::{Latency, SlowStore};

use holdfast_core::store::{
    Change, EntryRecord, Failure, Grant, Guarantees, InodeRecord, Intent, PageOf, Rest, Space,
    SpaceReport, SpaceRun, Stamp,
};
use holdfast_core::{Memory, Store};
use holdfast_types::{Ino, Result};
use std::sync::Arc;

/// The calls of [`Store`] that can fail or take time.
#[expect(missing_docs, reason = "each is the method of its name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    LoadInodes,
    LoadTarget,
    LoadXattrs,
    LoadRests,
    Lookup,
    ReadEntries,
    NextData,
    ReadData,
    Reserve,
    Apply,
    Commit,
    Walk,
    LastIno,
    Space,
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

    /// After the store accepted a batch.
    fn applied(&self, _batch: &[Change<'_>]) {}

    /// After the store has made everything up to a point durable (`None`: all of it).
    fn committed(&self, _upto: Option<Stamp>) {}
}

/// A store with a hook before every call.
pub struct Wrapped<H> {
    inner: Arc<dyn Store>,
    hook: H,
}

impl<H: Hook> Wrapped<H> {
    /// Puts the hook before the store.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, hook: H) -> Arc<Self> {
        Arc::new(Self { inner, hook })
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

    fn failure(&self) -> Arc<Failure> {
        self.inner.failure()
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        self.hook.before(Call::LoadInodes)?;
        inos.iter().try_for_each(|&ino| self.hook.loads(ino))?;
        self.inner.load_inodes(inos, found)
    }

    fn load_target(&self, ino: Ino) -> Result<Box<[u8]>> {
        self.hook.before(Call::LoadTarget)?;
        self.hook.loads(ino)?;
        self.inner.load_target(ino)
    }

    fn load_xattrs(&self, ino: Ino) -> Result<Vec<(Box<[u8]>, Box<[u8]>)>> {
        self.hook.before(Call::LoadXattrs)?;
        self.hook.loads(ino)?;
        self.inner.load_xattrs(ino)
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        self.hook.before(Call::LoadRests)?;
        let mut inos = records.iter().map(|record| record.ino);
        inos.try_for_each(|ino| self.hook.loads(ino))?;
        self.inner.load_rests(records, found)
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Option<EntryRecord>> {
        self.hook.before(Call::Lookup)?;
        self.inner.lookup(dir, name)
    }

    fn read_entries(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        run: &mut Vec<(EntryRecord, InodeRecord)>,
    ) -> Result<()> {
        self.hook.before(Call::ReadEntries)?;
        self.inner.read_entries(dir, after, max, run)
    }

    fn next_cookie(&self, dir: Ino) -> Result<u64> {
        self.hook.before(Call::ReadEntries)?;
        self.inner.next_cookie(dir)
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        self.hook.before(Call::NextData)?;
        self.inner.next_space(ino, offset)
    }

    fn next_data(&self, ino: Ino, offset: u64) -> Result<Option<(u64, u64)>> {
        self.hook.before(Call::NextData)?;
        self.inner.next_data(ino, offset)
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.hook.before(Call::ReadData)?;
        self.inner.read_data(ino, offset, buf)
    }

    fn reserve(&self, intent: &Intent) -> Result<Grant> {
        self.hook.before(Call::Reserve)?;
        self.inner.reserve(intent)
    }

    fn give_back(&self, held: Grant) {
        self.inner.give_back(held);
    }

    fn join(&self, memory: &Arc<Memory>) {
        self.inner.join(memory);
    }

    fn release(&self, space: Space) {
        self.inner.release(space);
    }

    fn apply(&self, held: &mut Grant, batch: &[Change<'_>]) -> Result<Stamp> {
        self.hook.before(Call::Apply)?;
        let stamp = self.inner.apply(held, batch)?;
        self.hook.applied(batch);
        Ok(stamp)
    }

    fn expect_write(&self, ino: Ino, offset: u64) {
        self.inner.expect_write(ino, offset);
    }

    fn apply_written(
        &self,
        held: &mut Grant,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Result<Stamp> {
        self.hook.before(Call::Apply)?;
        let stamp = self.inner.apply_written(held, batch, page)?;
        self.hook.applied(batch);
        Ok(stamp)
    }

    fn commit(&self, upto: Option<Stamp>) -> Result<()> {
        self.hook.before(Call::Commit)?;
        self.inner.commit(upto)?;
        self.hook.committed(upto);
        Ok(())
    }

    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        self.hook.before(Call::Walk)?;
        let before = run.len();
        self.inner.walk(after, max, run)?;
        let mut inos = run[before..].iter().map(|record| record.ino);
        inos.try_for_each(|ino| self.hook.loads(ino))
    }

    fn last_ino(&self) -> Result<Ino> {
        self.hook.before(Call::LastIno)?;
        self.inner.last_ino()
    }

    fn space(&self) -> Result<SpaceReport> {
        self.hook.before(Call::Space)?;
        self.inner.space()
    }
}
