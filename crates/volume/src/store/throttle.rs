//! Throttling writers.

use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::checkpoint::checkpoint;
use super::commit::{HELP_MAX, make_durable};
use super::{Inner, VolumeStore};
use crate::block::BLOCK;
use crate::error::Result;

/// The limit of dirty pages, however large the journal is: a part of the memory, within bounds
/// (128 MiB, 1 GiB). From half of it on a commit writes them. The more pages wait, the more of them
/// are contiguous, and the fewer are written twice.
static DIRTY_MAX: LazyLock<u64> = LazyLock::new(|| {
    let system = rustix::system::sysinfo();
    let memory = system.totalram as u64 * u64::from(system.mem_unit);
    (memory / BLOCK as u64 / 16).clamp(32_768, 262_144)
});
/// Journal bytes of a page's extent, at most.
const MAP_MAX: u64 = 32;
/// The part of the journal that is left to commits.
const COMMITS_PART: u64 = 8;

impl VolumeStore {
    /// Requests a checkpoint if the journal is half full.
    pub(super) fn look_at_journal(&self) {
        let journal = &self.inner.journal;
        if journal.used() > journal.capacity() / 2 {
            self.worker.ask_to_checkpoint();
        }
    }

    /// Requests a commit if there are many dirty pages, and waits for it if there are too many.
    pub(super) fn look_at_waiting(&self) -> Result<()> {
        let inner = &self.inner;
        let dirty = waiting(inner);
        let most = dirty_max(inner);
        if dirty > most {
            self.wait_for_a_commit(most)?;
        } else if dirty > most / 2 {
            // The other half may get dirty during the commit.
            self.worker.ask_to_commit();
        }
        Ok(())
    }

    /// Waits for a commit if there are many dirty pages, before space for more is reserved. A
    /// commit keeps the reservations of operations in progress, so no writer should wait for one
    /// while it holds a reservation.
    pub(super) fn shrink(&self) -> Result<()> {
        let enough = dirty_max(&self.inner) / 8 * 7;
        if waiting(&self.inner) > enough {
            self.wait_for_a_commit(enough)?;
        }
        Ok(())
    }

    /// Waits until a commit has taken enough pages, but not until they are written. So a writer
    /// runs in parallel to the volume's thread. If that thread makes no progress, the commit is
    /// made here.
    fn wait_for_a_commit(&self, enough: u64) -> Result<()> {
        let inner = &self.inner;
        let _waits = inner.counters.writer_waits.begin();
        let until = Instant::now() + HELP_MAX;
        while waiting(inner) > enough {
            inner.stop.running()?;
            if inner.checkpointing.is_locked() {
                // A checkpoint takes long, and commits do not wait for it.
                return make_durable(inner, None);
            }
            // A request is dropped if the thread is busy; it is repeated after the next step.
            let seen = inner.stop.progress.steps();
            self.worker.ask_to_commit();
            if waiting(inner) > enough && !inner.stop.progress.wait_behind(seen, until) {
                return make_durable(inner, None);
            }
        }
        Ok(())
    }

    /// Waits while there are too many changes: until a checkpoint has frozen them, not until it is
    /// done. So a checkpoint takes as many as the limit, while as many may come. If the volume's
    /// thread makes no progress, the checkpoint is made here.
    ///
    /// # Errors
    /// Those of a checkpoint.
    pub(super) fn keep_budget(&self) -> Result<()> {
        if self.has_room_for_changes() {
            return Ok(());
        }
        let inner = &self.inner;
        let _waits = inner.counters.writer_waits.begin();
        let until = Instant::now() + HELP_MAX;
        loop {
            inner.stop.running()?;
            let seen = inner.stop.progress.steps();
            if self.has_room_for_changes() {
                return Ok(());
            }
            if !inner.stop.progress.wait_behind(seen, until) {
                return checkpoint(inner);
            }
        }
    }

    /// Is there room for more changes? From half of their limit on a checkpoint is requested.
    pub(super) fn has_room_for_changes(&self) -> bool {
        let (inner, budget) = (&self.inner, &self.inner.budget);
        // Relaxed: a hint. It is written when a checkpoint is due, not by every batch.
        if !budget.over_half.load(Relaxed) {
            return true;
        }
        let changed = inner.reader.freeze_barrier.pass().active.memory();
        if changed > budget.changes() / 2 {
            self.worker.ask_to_checkpoint();
        } else {
            budget.over_half.store(false, Relaxed);
        }
        changed <= budget.changes()
    }
}

/// Dirty pages, approximately.
fn waiting(store: &Inner) -> u64 {
    store.reader.freeze_barrier.pass().active.dirty()
}

/// The limit of dirty pages.
fn dirty_max(store: &Inner) -> u64 {
    let journal = store.journal.capacity() / COMMITS_PART / MAP_MAX;
    DIRTY_MAX.min(journal).min(store.budget.pages())
}
