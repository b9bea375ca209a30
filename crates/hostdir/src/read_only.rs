//! A store that cannot be changed.

use holdfast_core::store::{Behind, Change, Grant, Intent, Space, Stamp};
use holdfast_core::types::{Errno, Ino, Result};

/// Refuses all changes.
pub(crate) struct ReadOnly;

impl Behind for ReadOnly {
    fn last_ino(&self) -> Result<Ino> {
        Ok(Ino::ROOT)
    }

    fn reserve(&self, _intent: &Intent) -> Result<Grant> {
        Err(Errno::EROFS)
    }

    fn reserve_at_once(&self, _intent: &Intent) -> Option<Grant> {
        None
    }

    fn give_back(&self, _held: Grant) {}

    fn release(&self, _space: Space) {}

    fn apply(&self, _held: &mut Grant, _batch: &[Change<'_>]) -> Result<Stamp> {
        Err(Errno::EROFS)
    }
}
