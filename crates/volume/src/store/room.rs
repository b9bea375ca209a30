//! Keeping writers from outrunning the device.

use super::{Inner, VolumeStore};
use crate::Result;
use crate::space::{self, Remedy};

/// Pages that may wait to be written, however large the journal is: 128 MiB.
const DIRTY_MAX: u64 = 32_768;
/// Bytes of the journal that a page's place takes at most.
const MAP_MAX: u64 = 32;
/// The part of the journal that is left to commits.
const COMMITS_PART: u64 = 8;
/// How often what others took meanwhile is fetched again.
const ATTEMPTS: usize = 4;

impl VolumeStore {
    /// Waits until there is room for another batch in memory and in the journal.
    pub(super) fn throttle(&self) -> Result<()> {
        let inner = &self.inner;
        let (used, capacity) = (inner.journal.used(), inner.journal.capacity());
        if used > capacity / 2 {
            self.worker.ask_to_fold();
        }
        if used > capacity - capacity / 8 {
            inner.checkpoint(false)?;
        }
        let dirty = inner.layers.read().active.dirty() as u64;
        if dirty > DIRTY_MAX.min(capacity / COMMITS_PART / MAP_MAX) {
            inner.make_durable(None)?;
        }
        Ok(())
    }
}

impl Inner {
    /// Promises blocks for pages that are about to be written.
    pub(super) fn promise(&self, blocks: u64) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let grown = self.promise.lock().grow(blocks);
            match grown {
                Ok(()) => return Ok(()),
                Err(space::Error::Later { remedy }) => self.make_room(remedy)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.promise.lock().grow(blocks)?)
    }

    fn make_room(&self, remedy: Remedy) -> Result<()> {
        match remedy {
            Remedy::Commit => self.make_durable(None),
            Remedy::Checkpoint => self.checkpoint(false),
        }
    }
}
