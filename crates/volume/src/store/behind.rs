//! The contract with the core: how a volume is changed, behind the memory of the core.

use std::cell::Cell;

use holdfast_core::store::{
    Behind, Change, Grant, Intent, Lsn, PageOf, SharedPages, Space as Freed,
};
use holdfast_types::{Errno, Ino, Result};

use super::high_water::{NUMBERS_END, Verdict};
use super::{Inner, VolumeStore};
use crate::journal::Record;
use crate::space::FileRequest;
use crate::store::apply::evict::without_last_attributes;
use crate::store::apply::prefetched::Prefetched;
use crate::store::apply::transaction::{Applier, is_of_content};
use crate::store::commit::extent_of;
use crate::store::file::extent_map::Run;
use crate::store::memtable::layers::Layers;
use crate::store::memtable::{Growth, SUBVOLUME};
use crate::{Error, tree};

impl Behind for VolumeStore {
    fn reserve(&self, intent: &Intent) -> Result<Grant> {
        if intent.pages > 0 {
            self.shrink()?;
        } else {
            self.keep_up()?;
        }
        if intent.allocated > 0 {
            // They get places in the midst of the batch.
            self.inner.space.ready().map_err(Error::from)?;
        }
        Ok(self.inner.reserve(intent)?)
    }

    fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        let may = intent.allocated == 0 && self.keeps_up_at_once();
        may.then(|| self.inner.reserve_at_once(intent)).flatten()
    }

    fn give_back(&self, held: Grant) {
        self.inner.give_back(held);
    }

    fn release(&self, _space: Freed) {
        // Space comes back with the changes that free it.
    }

    fn apply(&self, held: &mut Grant, batch: &[Change<'_>]) -> Result<Lsn> {
        if batch.iter().any(is_of_content) {
            self.look_at_waiting()?;
        }
        let growth = Growth::of(without_last_attributes(batch).1);
        self.admit_created(batch)?;
        self.use_held(held, growth, |pages| {
            self.inner.apply(batch, None, growth, pages)
        })
    }

    fn last_ino(&self) -> Result<Ino> {
        Ok(Ino(self.inner.met.get()))
    }
}

impl SharedPages for VolumeStore {
    fn apply_written(
        &self,
        held: &mut Grant,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Result<Lsn> {
        self.look_at_waiting()?;
        let growth = Growth::of(batch);
        self.use_held(held, growth, |pages| {
            self.inner.apply(batch, Some(page), growth, pages)
        })
    }
}

impl VolumeStore {
    /// Makes a batch, which changes so much, out of what was kept for it: of that nothing lacks.
    fn use_held(
        &self,
        held: &mut Grant,
        growth: Growth,
        make: impl FnOnce(u64) -> crate::Result<Lsn>,
    ) -> Result<Lsn> {
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

impl VolumeStore {
    /// Sees to it that the new inodes of a batch may be shown: mostly by a look. Called before the batch passes the gate.
    #[inline]
    fn admit_created(&self, batch: &[Change<'_>]) -> crate::Result<()> {
        for change in batch {
            if let Change::Create { inode, .. } = change
                && !self.inner.high_water.allows(inode.ino)
            {
                self.raise_for(inode.ino)?;
            }
        }
        Ok(())
    }

    /// Waits for a commit only if the numbers of the durable mark are used up.
    #[cold]
    fn raise_for(&self, ino: Ino) -> crate::Result<()> {
        let inner = &self.inner;
        if ino.0 >= NUMBERS_END {
            return Err(Error::Damaged(format!("{ino} is no number of an inode")));
        }
        loop {
            inner.running()?;
            match inner.high_water.judge(ino, inner.journal.durable()) {
                Verdict::Allowed => return Ok(()),
                Verdict::AllowedForNow => {
                    if inner.high_water.early {
                        self.worker.ask_to_commit();
                    }
                    return Ok(());
                }
                Verdict::Not => inner.make_durable(None)?,
            }
        }
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
    ) -> crate::Result<Lsn> {
        let promise = Cell::new(promised);
        let made = self.make("a change", |layers, prefetched| {
            self.apply_in(layers, batch, kept, growth, &promise, prefetched)
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
        prefetched: &Prefetched<'_>,
    ) -> crate::Result<Lsn> {
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
        let mut applier = Applier {
            snapshot_reader: self.snapshot_reader(layers),
            kept,
            prefetched: Some(prefetched),
            place: &place,
            cut: Vec::new(),
            freed: Vec::new(),
            inodes: 0,
            ends: last.map(|inode| (inode.ino, inode.kind)),
        };
        let lsn = if batch.iter().any(is_of_content) {
            let records = applier.make(batch)?;
            layers.active.count(growth);
            // What has no place now waits for one.
            self.promises.add(promise.take());
            let lsn = match records.is_empty() {
                true => self.journal.before_next_cut(),
                false => self.journal.append_records(SUBVOLUME, &records)?,
            };
            for record in &records {
                if let Record::Map(map) = record {
                    self.space.record(extent_of(map), lsn.0)?;
                }
            }
            lsn
        } else {
            // It is journalled as it came.
            applier.make_others(batch)?;
            layers.active.count(growth);
            self.journal.append(SUBVOLUME, batch)?
        };
        for (ino, block) in &applier.cut {
            self.ahead.cut(*ino, *block);
        }
        for run in &applier.freed {
            self.space.free_data(run.extent, lsn.0)?;
        }
        for change in batch {
            if let Change::Free { ino } = change {
                self.ahead.forget(*ino);
            }
            if let Change::Create { inode, .. } = change {
                self.met.met(inode.ino);
            }
        }
        if applier.inodes != 0 {
            self.inodes.add(applier.inodes);
        }
        Ok(lsn)
    }
}
