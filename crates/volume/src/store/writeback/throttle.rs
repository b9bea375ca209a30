//! Keeping writers from outrunning the device.

use std::sync::LazyLock;
use std::time::Instant;

use crate::store::commit::progress::HELP_MAX;
use crate::store::{Inner, VolumeStore};
use crate::{BLOCK, Result};

/// Pages that may wait to be written, however large the journal is: a part of the memory, within
/// bounds (128 MiB, 1 GiB). From half of them on they are on their way, or earlier ([`Patience`](crate::store::writeback::background::Patience)).
/// The more wait, the more of them lie side by side, and the fewer are written twice.
static DIRTY_MAX: LazyLock<u64> = LazyLock::new(|| {
    let system = rustix::system::sysinfo();
    let memory = system.totalram as u64 * u64::from(system.mem_unit);
    (memory / BLOCK as u64 / 16).clamp(32_768, 262_144)
});
/// Bytes of the journal that a page's place takes at most.
const MAP_MAX: u64 = 32;
/// The part of the journal that is left to commits.
const COMMITS_PART: u64 = 8;

impl VolumeStore {
    /// Lets what changed be folded into the trees, if it is much: beside what goes on, as long as that is in time.
    ///
    /// # Errors
    /// Those of a checkpoint.
    pub(in crate::store) fn keep_up(&self) -> Result<()> {
        self.look_at_journal();
        self.keep_budget()
    }

    /// As [`keep_up`](Self::keep_up), for an operation that must not wait: is there room for more changes? Else it does without.
    pub(in crate::store) fn keeps_up_at_once(&self) -> bool {
        self.look_at_journal();
        self.has_room_for_changes()
    }

    fn look_at_journal(&self) {
        let journal = &self.inner.journal;
        if journal.used() > journal.capacity() / 2 {
            self.worker.ask_to_fold();
        }
    }

    /// Lets pages that wait be written if they are many, and waits for that if they are too many.
    pub(in crate::store) fn look_at_waiting(&self) -> Result<()> {
        let inner = &self.inner;
        let (dirty, ready) = inner.waiting();
        let most = inner.dirty_max();
        if dirty > most {
            self.wait_for_a_commit(most)?;
        } else if dirty > most / 2 || inner.patience.ends(dirty, ready) {
            // While it is at work there is room for as much again.
            self.worker.ask_to_commit();
        }
        Ok(())
    }

    /// Waits if pages that wait are many, before more are promised room: a commit keeps the promises of those who are
    /// under way, but not for ever, so no writer should have to wait for one behind that.
    pub(in crate::store) fn shrink(&self) -> Result<()> {
        let enough = self.inner.dirty_max() / 8 * 7;
        if self.inner.waiting().0 > enough {
            self.wait_for_a_commit(enough)?;
        }
        Ok(())
    }

    /// Waits until no more pages than `enough` wait to be written: until a commit has taken them, not until it has
    /// written them. So whoever writes goes on beside the volume's thread, with as much on its way as may wait. If that
    /// thread comes to nothing, because it cannot run or the device is slow, the commit is made here.
    fn wait_for_a_commit(&self, enough: u64) -> Result<()> {
        let inner = &self.inner;
        let _waits = inner.tallies.writer_waits.begin();
        let until = Instant::now() + HELP_MAX;
        while inner.waiting().0 > enough {
            inner.running()?;
            if inner.checkpointing.is_locked() {
                // That takes long, and leaves commits to others.
                return inner.make_durable(None);
            }
            // What is asked for while it is busy is forgotten when that ends, and asked for again then.
            let seen = inner.progress.steps();
            self.worker.ask_to_commit();
            if inner.waiting().0 > enough && !inner.progress.wait_behind(seen, until) {
                return inner.make_durable(None);
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Pages that wait to be written, and those of them that a commit may take now.
    pub(in crate::store) fn waiting(&self) -> (u64, u64) {
        let layers = self.freeze_barrier.pass();
        let active = &layers.active;
        (active.dirty(), active.ready())
    }

    /// Pages that may wait.
    fn dirty_max(&self) -> u64 {
        let journal = self.journal.capacity() / COMMITS_PART / MAP_MAX;
        DIRTY_MAX.min(journal).min(self.budget.pages())
    }
}
