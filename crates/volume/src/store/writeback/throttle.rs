//! Throttling writers.

use std::sync::LazyLock;
use std::time::Instant;

use crate::block::BLOCK;
use crate::error::Result;
use crate::store::commit::progress::HELP_MAX;
use crate::store::{Inner, VolumeStore};

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
    /// Requests a checkpoint if much has changed, and waits for it only if it falls behind.
    ///
    /// # Errors
    /// Those of a checkpoint.
    pub(in crate::store) fn keep_up(&self) -> Result<()> {
        self.look_at_journal();
        self.keep_budget()
    }

    /// As [`keep_up`](Self::keep_up), without waiting: `false` if it would wait.
    pub(in crate::store) fn keeps_up_at_once(&self) -> bool {
        self.look_at_journal();
        self.has_room_for_changes()
    }

    fn look_at_journal(&self) {
        let journal = &self.inner.journal;
        if journal.used() > journal.capacity() / 2 {
            self.worker.ask_to_checkpoint();
        }
    }

    /// Requests a commit if there are many dirty pages, and waits for it if there are too many.
    pub(in crate::store) fn look_at_waiting(&self) -> Result<()> {
        let inner = &self.inner;
        let dirty = inner.waiting();
        let most = inner.dirty_max();
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
    pub(in crate::store) fn shrink(&self) -> Result<()> {
        let enough = self.inner.dirty_max() / 8 * 7;
        if self.inner.waiting() > enough {
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
        while inner.waiting() > enough {
            inner.running()?;
            if inner.checkpointing.is_locked() {
                // A checkpoint takes long, and commits do not wait for it.
                return inner.make_durable(None);
            }
            // A request is dropped if the thread is busy; it is repeated after the next step.
            let seen = inner.progress.steps();
            self.worker.ask_to_commit();
            if inner.waiting() > enough && !inner.progress.wait_behind(seen, until) {
                return inner.make_durable(None);
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Dirty pages, approximately.
    pub(in crate::store) fn waiting(&self) -> u64 {
        self.freeze_barrier.pass().active.dirty()
    }

    /// The limit of dirty pages.
    fn dirty_max(&self) -> u64 {
        let journal = self.journal.capacity() / COMMITS_PART / MAP_MAX;
        DIRTY_MAX.min(journal).min(self.budget.pages())
    }
}
