//! The read half of the core's store contract.

use std::sync::{Arc, Weak};

use holdfast_core::budget::Member;
use holdfast_core::store::{
    EntryRecord, Failure, Guarantees, InodeRecord, Lsn, NameRun, Rest, SharedPages, SpaceReport,
    SpaceRun, WalkInodes, Writes,
};
use holdfast_core::{Memory, Store};
use holdfast_types::{Ino, Result};

use super::budget_member::Nodes;
use super::commit::make_durable;
use super::{INLINE_MAX, VolumeStore};

impl Store for VolumeStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            pinned: false,
            blocks: true,
            small: INLINE_MAX as u64,
            frees: true,
        }
    }

    fn writes(self: Arc<Self>) -> Writes {
        Writes::Behind(self)
    }

    fn failure(&self) -> Arc<Failure> {
        Arc::clone(&self.inner.stop.failure)
    }

    fn join(&self, memory: &Arc<Memory>) {
        // A store joins one budget.
        if self.inner.budget.memory.set(Arc::clone(memory)).is_ok() {
            let nodes = memory.shrinkers().register(Nodes, &self.inner);
            let _ = self.shrinker.set(nodes);
            memory.join(Arc::downgrade(&self.inner) as Weak<dyn Member>);
        }
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        hop!();
        let before = found.len();
        Ok(self.inner.reader.read(|snapshot_reader| {
            found.truncate(before);
            if let [ino] = inos {
                found.extend(snapshot_reader.whole_inode(*ino)?);
                return Ok(());
            }
            snapshot_reader.each_inode(inos, |record| found.extend(record))
        })?)
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        let before = found.len();
        Ok(self.inner.reader.read(|snapshot_reader| {
            found.truncate(before);
            snapshot_reader.each_rest(records, |rest| found.push(rest))
        })?)
    }

    fn look_up(
        &self,
        dir: Ino,
        names: &[&[u8]],
        found: &mut Vec<Option<(EntryRecord, Option<InodeRecord>)>>,
    ) -> Result<()> {
        hop!();
        let before = found.len();
        Ok(self.inner.reader.read(|snapshot_reader| {
            found.truncate(before);
            for name in names {
                found.push(snapshot_reader.look_up(dir, name)?);
            }
            Ok(())
        })?)
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        let before = run.len();
        Ok(self.inner.reader.read(|snapshot_reader| {
            run.truncate(before);
            snapshot_reader.names(dir, after, max, run)
        })?)
    }

    fn end_cookie(&self, dir: Ino) -> Result<u64> {
        Ok(self
            .inner
            .reader
            .read(|snapshot_reader| snapshot_reader.end_cookie(dir))?)
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        Ok(self
            .inner
            .reader
            .read(|snapshot_reader| snapshot_reader.next_space(ino, offset))?)
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        Ok(self.inner.reader.read_data(ino, offset, buf)?)
    }

    fn commit(&self, upto: Option<Lsn>) -> Result<()> {
        Ok(make_durable(&self.inner, upto)?)
    }

    fn space(&self) -> Result<SpaceReport> {
        let blocks = self.inner.reader.blocks();
        self.inner.pool.look_at_host_in_time(blocks);
        let report = self.inner.space.report();
        let kept = report.node_reserve + report.withheld;
        let free = report.available() + kept;
        Ok(SpaceReport {
            pages: Some(report.total),
            pages_used: report.total.saturating_sub(free),
            pages_reserved: kept.min(report.total),
            inodes: None,
            inodes_used: self.inner.inodes(),
        })
    }
    fn walk(&self) -> Option<&dyn WalkInodes> {
        Some(self)
    }

    fn pages(&self) -> Option<&dyn SharedPages> {
        Some(self)
    }
}

impl WalkInodes for VolumeStore {
    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        let before = run.len();
        Ok(self.inner.reader.read(|snapshot_reader| {
            run.truncate(before);
            snapshot_reader.walk(after, max, run)
        })?)
    }

    fn split(&self, parts: usize) -> Result<Vec<Ino>> {
        Ok(self
            .inner
            .reader
            .read(|snapshot_reader| snapshot_reader.split(parts))?)
    }
}
