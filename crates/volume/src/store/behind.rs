//! The write half of the core's store contract.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use holdfast_core::store::{
    Behind, Change, Grant, Intent, Lsn, PageOf, SharedPages, Space as Freed,
};
use holdfast_types::{Errno, FileType, Ino, Result};

use super::high_water::NUMBERS_END;
use super::{Inner, VolumeStore};
use crate::error::Error;
use crate::journal::Record;
use crate::space::FileRequest;
use crate::store::apply::evict::without_last_attributes;
use crate::store::apply::prefetched::Prefetched;
use crate::store::apply::transaction::{Applier, is_of_content};
use crate::store::commit::extent_of;
use crate::store::file::extent_map::Run;
use crate::store::memtable::layers::Layers;
use crate::store::memtable::{SUBVOLUME, TreeCost};
use crate::tree;

impl Behind for VolumeStore {
    fn reserve(&self, intent: &Intent) -> Result<Grant> {
        hop!();
        if intent.pages > 0 {
            self.shrink()?;
        } else {
            self.keep_up()?;
        }
        if intent.allocated > 0 {
            // The batch itself allocates these.
            self.inner.space.ready().map_err(Error::from)?;
        }
        Ok(self.inner.reserve(intent)?)
    }

    fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        hop!();
        let may = intent.allocated == 0 && self.keeps_up_at_once();
        may.then(|| self.inner.reserve_at_once(intent)).flatten()
    }

    fn give_back(&self, held: Grant) {
        self.inner.give_back(held);
    }

    fn release(&self, _space: Freed) {
        // The changes that free space give it back.
    }

    fn apply(&self, held: &mut Grant, batch: &[Change<'_>]) -> Result<Lsn> {
        self.apply_with(held, batch, None)
    }

    fn last_ino(&self) -> Result<Ino> {
        Ok(Ino(self.inner.max_ino.load(Ordering::Relaxed)))
    }
}

impl SharedPages for VolumeStore {
    fn apply_written(
        &self,
        held: &mut Grant,
        batch: &[Change<'_>],
        page: &PageOf<'_>,
    ) -> Result<Lsn> {
        self.apply_with(held, batch, Some(page))
    }
}

impl VolumeStore {
    /// Applies a batch with its reservation `held`, which is large enough (asserted).
    fn apply_with(
        &self,
        held: &mut Grant,
        batch: &[Change<'_>],
        kept: Option<&PageOf<'_>>,
    ) -> Result<Lsn> {
        hop!();
        if batch.iter().any(is_of_content) {
            self.look_at_waiting()?;
        }
        let tree_cost = TreeCost::of(without_last_attributes(batch).1);
        self.admit_created(batch)?;
        let inner = &self.inner;
        inner.cover(held, tree_cost)?;
        let held = std::mem::take(held);
        let applied = inner.apply(batch, kept, tree_cost, held.pages);
        inner.used(held);
        debug_assert!(
            // A device may report ENOSPC at any time.
            !matches!(
                &applied,
                Err(error) if error.errno() == Errno::ENOSPC
                    && !matches!(error, Error::Device(_) | Error::Tree(tree::Error::Device { .. }))
            ),
            "{applied:?}: {held:?} was kept for {tree_cost:?}"
        );
        Ok(applied?)
    }

    /// Makes sure that `high_water` allows the new inodes of a batch. Called before the batch
    /// passes the barrier.
    #[inline]
    fn admit_created(&self, batch: &[Change<'_>]) -> crate::error::Result<()> {
        for change in batch {
            if let Change::Create { inode, .. } = change
                && !self.inner.high_water.allows(inode.ino)
            {
                self.raise_for(inode.ino)?;
            }
        }
        Ok(())
    }

    /// Waits for a commit only if `ino` is above the durable mark.
    #[cold]
    fn raise_for(&self, ino: Ino) -> crate::error::Result<()> {
        let inner = &self.inner;
        if ino.0 >= NUMBERS_END {
            return Err(Error::Damaged(format!("{ino} is no number of an inode")));
        }
        while !inner.high_water.judge(ino, inner.journal.durable()) {
            inner.make_durable(None)?;
        }
        Ok(())
    }
}

impl Inner {
    /// Applies one operation's changes, in memory and in the journal. `kept`: cached pages that
    /// already hold what is written. `reserved`: blocks reserved for pages without extents.
    pub(super) fn apply(
        &self,
        batch: &[Change<'_>],
        kept: Option<&PageOf<'_>>,
        tree_cost: TreeCost,
        reserved: u64,
    ) -> crate::error::Result<Lsn> {
        hop!();
        let unused = Cell::new(reserved);
        let made = self.make("a change", |layers, prefetched| {
            self.apply_in(layers, batch, kept, tree_cost, &unused, prefetched)
        });
        // The unused part of the reservation.
        self.space.unreserve(unused.take());
        made
    }

    /// As [`apply`](Self::apply), inside the barrier.
    fn apply_in(
        &self,
        layers: &Layers,
        batch: &[Change<'_>],
        kept: Option<&PageOf<'_>>,
        tree_cost: TreeCost,
        unused: &Cell<u64>,
        prefetched: &Prefetched<'_>,
    ) -> crate::error::Result<Lsn> {
        hop!();
        let (last, batch) = without_last_attributes(batch);
        let place = |ino: Ino, request: &FileRequest| {
            let extent = if unused.get() > 0 {
                self.page_reservations.place_from(unused, |reservation| {
                    self.preallocations.place(ino, request, Some(reservation))
                })?
            } else {
                // Overwritten dirty pages leave their reservations unused.
                let more = self.space.reserve(request.length);
                let mut more = more.unwrap_or_else(|_| self.page_reservations.draw(request.length));
                let placed = self.preallocations.place(ino, request, Some(&mut more));
                self.page_reservations.add(more.into_blocks());
                placed?
            };
            #[cfg(test)]
            self.recorder.placed(extent.length);
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
            not_a_file: last
                .filter(|inode| inode.kind != FileType::Regular)
                .map(|inode| inode.ino),
        };
        let records = applier.make(batch)?;
        layers.active.count(tree_cost);
        // Dirty pages without extents keep their reservation until a commit.
        self.page_reservations.add(unused.take());
        let lsn = match records.is_empty() {
            true => self.journal.before_next_cut(),
            false => self.journal.append(SUBVOLUME, &records)?,
        };
        for record in &records {
            if let Record::Map(map) = record {
                self.space.record(extent_of(map), lsn.0)?;
            }
        }
        for (ino, block) in &applier.cut {
            self.preallocations.cut(*ino, *block);
        }
        for run in &applier.freed {
            self.space.free_data(run.extent, lsn.0)?;
        }
        for change in batch {
            if let Change::Free { ino } = change {
                self.preallocations.forget(*ino);
            }
            // Relaxed: a commit, which needs the exact value, has closed the barrier.
            if let Change::Create { inode, .. } = change {
                self.max_ino.fetch_max(inode.ino.0, Ordering::Relaxed);
            }
        }
        if applier.inodes != 0 {
            self.inodes.add(applier.inodes);
        }
        Ok(lsn)
    }
}
