//! The write half of the core's store contract.

use std::sync::atomic::Ordering;

use holdfast_core::store::{
    Behind, Change, Grant, Intent, Lsn, PageOf, SharedPages, Space as Freed,
};
use holdfast_types::{Errno, Ino, Result};

use super::VolumeStore;
use super::apply::{apply, is_of_content, without_last_attributes};
use super::commit::make_durable;
use super::high_water::NUMBERS_END;
use super::memtable::TreeCost;
use super::reserve::{cover, reserve, reserve_at_once};
use crate::error::Error;
use crate::tree;

impl Behind for VolumeStore {
    fn reserve(&self, intent: &Intent) -> Result<Grant> {
        hop!();
        if intent.pages > 0 {
            self.shrink()?;
        } else {
            self.look_at_journal();
            self.keep_budget()?;
        }
        if intent.allocated > 0 {
            // The batch itself allocates these.
            self.inner.space.ready().map_err(Error::from)?;
        }
        Ok(reserve(&self.inner, intent)?)
    }

    fn reserve_at_once(&self, intent: &Intent) -> Option<Grant> {
        hop!();
        if intent.allocated > 0 {
            return None;
        }
        self.look_at_journal();
        let may = self.has_room_for_changes();
        may.then(|| reserve_at_once(&self.inner, intent)).flatten()
    }

    fn give_back(&self, held: Grant) {
        self.inner.pool.give_back(&held);
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
        cover(inner, held, tree_cost)?;
        let held = std::mem::take(held);
        let applied = apply(inner, batch, kept, tree_cost, held.pages);
        inner.pool.uncharge(held.records, held.journal);
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
            make_durable(inner, None)?;
        }
        Ok(())
    }
}
