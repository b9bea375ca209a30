//! The `Behind` of a file system over a store that is written through.

use super::{Behind, Change, Grant, Intent, Lsn, Space};
use crate::types::{Errno, Ino, Result};

/// Refuses all changes with `EROFS`, and counts no space. Operations that change something do not
/// reach it: they take the path of `through` before.
pub(crate) struct NothingBehind;

impl Behind for NothingBehind {
    /// No number is ever allocated from it: the store allocates the numbers.
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

    fn apply(&self, _held: &mut Grant, _batch: &[Change<'_>]) -> Result<Lsn> {
        Err(Errno::EROFS)
    }
}
