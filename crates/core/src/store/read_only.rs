//! A store that cannot be changed.

use super::{Behind, Change, Grant, Intent, Space, Stamp};
use crate::types::{Errno, Ino, Result};

/// Refuses all changes with `EROFS`: what a store that is only read names in [`Store::writes`](super::Store::writes). Such a store numbers
/// its inodes itself ([`Shared`](super::Shared)), so that no number is ever dealt behind the last one.
#[derive(Clone, Copy, Debug)]
pub struct ReadOnly;

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
