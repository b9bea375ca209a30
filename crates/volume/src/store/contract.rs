//! The contract with the core.

use std::cell::Cell;
use std::sync::Arc;

use holdfast_core::store::{
    Change, EntryRecord, Failure, Grant, Guarantees, InodeRecord, Intent, NameRun, PageOf, Rest,
    Space as Freed, SpaceReport, SpaceRun, Stamp, XattrList,
};
use holdfast_core::{Memory, Store};
use holdfast_types::{Errno, Ino, Result};

use super::{INLINE_MAX, Inner, VolumeStore};
use crate::journal::Record;
use crate::space::FileRequest;
use crate::store::apply::create::Birth;
use crate::store::apply::evict::without_last_attributes;
use crate::store::apply::fetched::Fetched;
use crate::store::apply::transaction::{Maker, is_of_content};
use crate::store::apply::unlink::Death;
use crate::store::commit::extent_of;
use crate::store::file::content::Content;
use crate::store::file::extent_map::Run;
use crate::store::load::Finder;
use crate::store::memtable::Growth;
use crate::store::memtable::layers::Layers;
use crate::store::memtable::{Object, REALM};
use crate::store::writeback::redirty::WrittenOn;
use crate::{Error, tree};

impl Store for VolumeStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            pinned: false,
            exclusive: true,
            durable: true,
            blocks: true,
            small: INLINE_MAX as u64,
            frees: true,
            times_and_flags: self.inner.superblock.lock().features.has_times_and_flags(),
        }
    }

    fn failure(&self) -> Arc<Failure> {
        Arc::clone(&self.inner.failure)
    }

    fn join(&self, memory: &Arc<Memory>) {
        self.share(memory);
    }

    fn load_inodes(&self, inos: &[Ino], found: &mut Vec<InodeRecord>) -> Result<()> {
        let before = found.len();
        Ok(self.inner.read(|finder| {
            found.truncate(before);
            if let [ino] = inos {
                found.extend(finder.whole_inode(*ino)?);
                return Ok(());
            }
            finder.each_inode(inos, |record| found.extend(record))
        })?)
    }

    fn load_target(&self, ino: Ino) -> Result<Box<[u8]>> {
        let target = |finder: &Finder<'_>| finder.target(ino, &mut finder.data_records());
        Ok(self.inner.read(target)?)
    }

    fn load_xattrs(&self, ino: Ino) -> Result<XattrList> {
        let xattrs = |finder: &Finder<'_>| finder.xattrs(ino, &mut finder.data_records());
        Ok(self.inner.read(xattrs)?)
    }

    fn load_rests(&self, records: &[InodeRecord], found: &mut Vec<Rest>) -> Result<()> {
        let before = found.len();
        Ok(self.inner.read(|finder| {
            found.truncate(before);
            finder.each_rest(records, |rest| found.push(rest))
        })?)
    }

    fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Option<EntryRecord>> {
        Ok(self.inner.read(|finder| finder.lookup(dir, name))?)
    }

    fn read_entries(
        &self,
        dir: Ino,
        after: u64,
        max: usize,
        run: &mut Vec<(EntryRecord, InodeRecord)>,
    ) -> Result<()> {
        let (names, inodes) = self.inner.read(|finder| {
            let mut names = NameRun::default();
            finder.names(dir, after, max, &mut names)?;
            let mut inodes = Vec::with_capacity(names.len());
            let inos: Vec<Ino> = names.inos().collect();
            finder.each_inode(&inos, |inode| inodes.push(inode))?;
            Ok((names, inodes))
        })?;
        for (entry, inode) in names.iter().zip(inodes) {
            let entry = EntryRecord {
                name: entry.name.into(),
                cookie: entry.cookie,
                ino: entry.ino,
                kind: entry.kind,
            };
            run.push((entry, inode.ok_or(Errno::EUCLEAN)?));
        }
        Ok(())
    }

    fn next_cookie(&self, dir: Ino) -> Result<u64> {
        Ok(self.inner.read(|finder| finder.next_cookie(dir))?)
    }

    fn read_names(&self, dir: Ino, after: u64, max: usize, run: &mut NameRun) -> Result<()> {
        let before = run.len();
        Ok(self.inner.read(|finder| {
            run.truncate(before);
            finder.names(dir, after, max, run)
        })?)
    }

    fn next_data(&self, ino: Ino, offset: u64) -> Result<Option<(u64, u64)>> {
        let next = |content: &Content| Ok(content.next_data(offset));
        Ok(self
            .inner
            .read(|finder| finder.with_next(ino, offset, next))?)
    }

    fn next_space(&self, ino: Ino, offset: u64) -> Result<Option<SpaceRun>> {
        Ok(self.inner.read(|finder| finder.next_space(ino, offset))?)
    }

    fn read_data(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<()> {
        Ok(self.inner.read_data(ino, offset, buf)?)
    }

    fn reserve(&self, intent: &Intent) -> Result<Grant> {
        if intent.pages > 0 {
            self.relieve()?;
        } else {
            self.keep_up()?;
        }
        Ok(self.inner.reserve(intent)?)
    }

    fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        self.inner.reserve_at_once(intent)
    }

    fn give_back(&self, held: Grant) {
        self.inner.give_back(held);
    }

    fn release(&self, _space: Freed) {
        // Space comes back with the changes that free it.
    }

    fn apply(&self, held: &mut Grant, batch: &[Change<'_>]) -> Result<Stamp> {
        if let Some(birth) = Birth::of(batch) {
            let growth = birth.growth();
            self.admit(birth.ino())?;
            return self.use_held(held, growth, |_| self.inner.bear(&birth, batch, growth));
        }
        if let Some(death) = Death::of(batch) {
            let growth = death.growth();
            return self.use_held(held, growth, |_| self.inner.bury(&death, batch, growth));
        }
        if batch.iter().any(is_of_content) {
            self.look_at_waiting()?;
        }
        let growth = Growth::of(without_last_attributes(batch).1);
        self.admit_created(batch)?;
        self.use_held(held, growth, |pages| {
            self.inner.apply(batch, None, growth, pages)
        })
    }

    fn expect_write(&self, ino: Ino, offset: u64) {
        let layers = self.inner.gate.pass();
        let shard = layers.active.shard(ino);
        if let Some(content) = shard.get(ino).and_then(Object::content) {
            content.fetch(offset);
        }
    }

    fn apply_written(
        &self,
        held: &mut Grant,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Result<Stamp> {
        if let Some(WrittenOn { stamp, readied }) = self.inner.write_on(batch, page) {
            // Nothing came to what waits: whoever brought what is there has looked.
            if readied {
                self.look_at_waiting()?;
            }
            return Ok(stamp);
        }
        self.look_at_waiting()?;
        let growth = Growth::of(batch);
        self.use_held(held, growth, |pages| {
            self.inner.apply(batch, Some(page), growth, pages)
        })
    }

    fn commit(&self, upto: Option<Stamp>) -> Result<()> {
        Ok(self.inner.make_durable(upto)?)
    }

    fn walk(&self, after: Ino, max: usize, run: &mut Vec<InodeRecord>) -> Result<()> {
        let before = run.len();
        Ok(self.inner.read(|finder| {
            run.truncate(before);
            finder.walk(after, max, run)
        })?)
    }

    fn split(&self, parts: usize) -> Result<Vec<Ino>> {
        Ok(self.inner.read(|finder| finder.split(parts))?)
    }

    fn last_ino(&self) -> Result<Ino> {
        Ok(Ino(self.inner.met.get()))
    }

    fn space(&self) -> Result<SpaceReport> {
        let report = self.inner.space.report();
        let free = report.available() + report.spare;
        Ok(SpaceReport {
            pages: Some(report.total),
            pages_used: report.total.saturating_sub(free),
            pages_reserved: report.spare.min(report.total),
            inodes: None,
            inodes_used: self.inner.inodes(),
        })
    }
}

impl VolumeStore {
    /// Makes a batch, which changes so much, out of what was kept for it: of that nothing lacks.
    fn use_held(
        &self,
        held: &mut Grant,
        growth: Growth,
        make: impl FnOnce(u64) -> crate::Result<Stamp>,
    ) -> Result<Stamp> {
        let inner = &self.inner;
        inner.cover(held, growth)?;
        let held = std::mem::take(held);
        let applied = make(held.pages);
        inner.used(held);
        debug_assert!(
            // A device may say that it has no room, whatever was asked for.
            !matches!(
                &applied,
                Err(error) if error.errno() == Errno::ENOSPC
                    && !matches!(error, Error::Device(_) | Error::Tree(tree::Error::Device { .. }))
            ),
            "{applied:?}: {held:?} was kept for {growth:?}"
        );
        Ok(applied?)
    }
}

impl Inner {
    /// Makes one operation's changes, in memory and in the journal. `kept`: pages that hold what it
    /// writes. `promised`: blocks for those that have none.
    pub(super) fn apply(
        &self,
        batch: &[Change<'_>],
        kept: Option<&PageOf<'_>>,
        growth: Growth,
        promised: u64,
    ) -> crate::Result<Stamp> {
        let promise = Cell::new(promised);
        let made = self.make("a change", |layers, fetched| {
            self.apply_in(layers, batch, kept, growth, &promise, fetched)
        });
        // What nothing waits for goes back.
        self.space.unpromise(promise.take());
        made
    }

    /// As [`apply`](Self::apply), behind the gate.
    fn apply_in(
        &self,
        layers: &Layers,
        batch: &[Change<'_>],
        kept: Option<&PageOf<'_>>,
        growth: Growth,
        promise: &Cell<u64>,
        fetched: &Fetched<'_>,
    ) -> crate::Result<Stamp> {
        let (last, batch) = without_last_attributes(batch);
        let place = |ino: Ino, request: &FileRequest| {
            let extent = if promise.get() > 0 {
                self.promises.place_from(promise, |reservation| {
                    self.ahead.place(ino, request, Some(reservation))
                })?
            } else {
                // Pages that waited here and do so no longer leave what they were promised.
                let more = self.space.reserve(request.length);
                let mut more = more.unwrap_or_else(|_| self.promises.draw(request.length));
                let placed = self.ahead.place(ino, request, Some(&mut more));
                self.promises.add(more.into_blocks());
                placed?
            };
            #[cfg(test)]
            self.ledger.placed(extent.length);
            Ok(Run {
                extent,
                birth: self.next_generation(),
                unwritten: true,
            })
        };
        let mut maker = Maker {
            finder: self.finder(layers),
            kept,
            fetched: Some(fetched),
            place: &place,
            cut: Vec::new(),
            freed: Vec::new(),
            inodes: 0,
            ends: last.map(|inode| (inode.ino, inode.kind)),
        };
        let stamp = if batch.iter().any(is_of_content) {
            let records = maker.make(batch)?;
            layers.active.count(growth);
            // What has no place now waits for one.
            self.promises.add(promise.take());
            let stamp = match records.is_empty() {
                true => self.journal.before_next_cut(),
                false => self.journal.append_records(REALM, &records)?,
            };
            for record in &records {
                if let Record::Map(map) = record {
                    self.space.record(extent_of(map), stamp.0)?;
                }
            }
            stamp
        } else {
            // It is journalled as it came.
            maker.make_others(batch)?;
            layers.active.count(growth);
            self.journal.append(REALM, batch)?
        };
        for (ino, block) in &maker.cut {
            self.ahead.cut(*ino, *block);
        }
        for run in &maker.freed {
            self.space.free_data(run.extent, stamp.0)?;
        }
        for change in batch {
            if let Change::Free { ino } = change {
                self.ahead.forget(*ino);
            }
            if let Change::Create { inode, .. } = change {
                self.met.met(inode.ino);
            }
        }
        if maker.inodes != 0 {
            self.inodes.add(maker.inodes);
        }
        Ok(stamp)
    }
}
